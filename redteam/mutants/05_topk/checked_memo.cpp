// kbh: -O1
// Returns the former call's answer while its winners still stand in the input. Right until something larger comes up.
#define KBH_MUTANT checked_memo
#include "wrong.hpp"
