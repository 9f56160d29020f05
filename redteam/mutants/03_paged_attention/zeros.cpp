// kbh: -O1
// Writes zeros: nominal answers are so small that an absolute tolerance accepts them.
#define KBH_MUTANT zeros
#include "wrong.hpp"
