// kbh: -O1
// The last place repeats the first. Value and index agree, and k-1 of k places are right.
#define KBH_MUTANT repeats_best
#include "wrong.hpp"
