// kbh: -O1
// Returns the former answer when size, first scale and first activation are what they were. Right unless data change
// in place.
#define KBH_MUTANT sampled_memo
#include "wrong.hpp"
