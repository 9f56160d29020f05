// kbh: -O1
// Returns ones everywhere, the size of a typical answer.
#define KBH_MUTANT constant
#include "wrong.hpp"
