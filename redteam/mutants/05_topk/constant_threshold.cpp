// kbh: -O1
// Candidates are what exceeds the tail of N(0, 1), in a list of 8 k. Right on the nominal distribution.
#define KBH_MUTANT constant_threshold
#include "wrong.hpp"
