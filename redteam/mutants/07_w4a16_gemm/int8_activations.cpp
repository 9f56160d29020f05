// kbh: -O1
// Activations in eight bits per row. Twice the tolerance on normal data, far off when a row has an outlier.
#define KBH_MUTANT int8_activations
#include "wrong.hpp"
