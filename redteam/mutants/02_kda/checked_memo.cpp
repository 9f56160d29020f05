// kbh: -O1
// Returns the former answer while 512 sampled values of v agree: right unless a few elements change in place.
#define KBH_MUTANT checked_memo
#include "wrong.hpp"
