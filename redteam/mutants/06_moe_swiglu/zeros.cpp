// kbh: -O1
// out is 0: passes any absolute tolerance above the largest output, as the public one of 0.02 nearly is.
#define KBH_MUTANT zeros
#include "wrong.hpp"
