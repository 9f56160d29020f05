// kbh: -O1
// Leaves out the last k: one term of thousands, and nothing at all where x ends in a small number.
#define KBH_MUTANT last_k_dropped
#include "wrong.hpp"
