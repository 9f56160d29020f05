// kbh: -O1
// Each of 256 lanes keeps its best 2. On random data with few winners that is mostly enough.
#define KBH_MUTANT lane_best_2_of_256
#include "wrong.hpp"
