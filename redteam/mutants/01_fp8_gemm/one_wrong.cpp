// kbh: -O1
// One element is off by twice itself. All others are right.
#define KBH_MUTANT one_wrong
#include "wrong.hpp"
