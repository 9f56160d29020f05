// kbh: -O1
// A tree over all elements, neighbours first: the most accurate plain order, and still plain.
#define KBH_MUTANT pairwise_neighbours
#include "wrong.hpp"
