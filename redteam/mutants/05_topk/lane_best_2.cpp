// kbh: -O1
// Each of 1024 lanes keeps its best 2. On random data three winners hardly ever share a lane.
#define KBH_MUTANT lane_best_2
#include "wrong.hpp"
