// kbh: -O1
// Returns the answer of the call before. It was right then.
#define KBH_MUTANT stale
#include "wrong.hpp"
