// kbh: -O1
// one element at a place that the answer itself chooses is wrong by four tolerances: a lost race.
#define KBH_MUTANT one_wrong
#include "wrong.hpp"
