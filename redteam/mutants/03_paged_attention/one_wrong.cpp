// kbh: -O1
// One element at a place that depends on all queries is wrong: a lost race, hard to see in a mean error.
#define KBH_MUTANT one_wrong
#include "wrong.hpp"
