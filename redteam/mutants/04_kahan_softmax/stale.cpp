// kbh: -O1
// Returns the answer to the former call, then computes the one that is asked for: right when inputs never change.
#define KBH_MUTANT stale
#include "wrong.hpp"
