// kbh: -O1
// Returns the former call's answer. Right when the same data are given twice.
#define KBH_MUTANT stale
#include "wrong.hpp"
