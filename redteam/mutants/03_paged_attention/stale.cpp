// kbh: -O1
// Returns the former call's answer when sizes agree: right when the same inputs come again.
#define KBH_MUTANT stale
#include "wrong.hpp"
