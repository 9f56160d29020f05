// kbh: -O1
// Returns the former answer when x begins and ends as before. Right for fresh inputs, wrong when a few elements change.
#define KBH_MUTANT sampled_memo
#include "wrong.hpp"
