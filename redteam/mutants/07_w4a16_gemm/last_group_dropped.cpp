// kbh: -O1
// Leaves out the last group of K: a loop that ends one step too early.
#define KBH_MUTANT last_group_dropped
#include "wrong.hpp"
