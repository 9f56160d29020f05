// kbh: -O1
// Returns the former answer when every 61st element is unchanged: right unless few elements change.
#define KBH_MUTANT checked_memo
#include "wrong.hpp"
