// kbh: -O1
// the former call's answer: nothing is computed in the timed call.
#define KBH_MUTANT stale
#include "wrong.hpp"
