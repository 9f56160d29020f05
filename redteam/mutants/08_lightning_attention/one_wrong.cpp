// kbh: -O1
// One wrong element at a place that the data decide: right in all others.
#define KBH_MUTANT one_wrong
#include "wrong.hpp"
