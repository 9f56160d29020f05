// kbh: -O1
// Writes 1 everywhere: right where all values are 1, as in the public property case.
#define KBH_MUTANT constant
#include "wrong.hpp"
