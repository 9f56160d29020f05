// kbh: -O1
// Values are 1, indices 0 to k-1. Every index is in range and none repeats.
#define KBH_MUTANT constant
#include "wrong.hpp"
