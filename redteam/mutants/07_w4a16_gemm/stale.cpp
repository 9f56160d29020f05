// kbh: -O1
// Returns the answer to the call before. Right whenever the same data come twice.
#define KBH_MUTANT stale
#include "wrong.hpp"
