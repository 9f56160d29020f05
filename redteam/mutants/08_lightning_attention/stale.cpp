// kbh: -O1
// Returns the former call's answer: right for whoever calls twice with the same data.
#define KBH_MUTANT stale
#include "wrong.hpp"
