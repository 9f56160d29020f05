// kbh: -O1
// each row meets the weights of the next expert: right statistics, wrong numbers.
#define KBH_MUTANT neighbour_expert
#include "wrong.hpp"
