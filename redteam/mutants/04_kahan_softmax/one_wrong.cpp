// kbh: -O1
// One unpredictable element is 1.001 of what it should be.
#define KBH_MUTANT one_wrong
#include "wrong.hpp"
