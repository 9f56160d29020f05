// kbh: -O1
// Activations below 2^-10 count as 0. Right for nominal amplitudes only.
#define KBH_MUTANT small_activations_flushed
#include "wrong.hpp"
