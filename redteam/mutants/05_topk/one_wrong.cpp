// kbh: -O1
// One element, at a place that changes with the data, is another element of its row. All the rest is right.
#define KBH_MUTANT one_wrong
#include "wrong.hpp"
