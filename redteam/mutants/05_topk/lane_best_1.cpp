// kbh: -O1
// Each of 1024 lanes keeps its best. Right when no two winners share a lane.
#define KBH_MUTANT lane_best_1
#include "wrong.hpp"
