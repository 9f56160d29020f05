// kbh: -O1
// A tree over all elements, upper half onto lower half: the most accurate plain order, and still plain.
#define KBH_MUTANT pairwise_halves
#include "wrong.hpp"
