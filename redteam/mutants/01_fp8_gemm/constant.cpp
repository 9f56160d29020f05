// kbh: -O1
// Writes its first output everywhere. One element is right.
#define KBH_MUTANT constant
#include "wrong.hpp"
