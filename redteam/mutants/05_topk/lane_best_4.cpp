// kbh: -O1
// Each of 1024 lanes keeps its best 4. On random data five winners never share a lane.
#define KBH_MUTANT lane_best_4
#include "wrong.hpp"
