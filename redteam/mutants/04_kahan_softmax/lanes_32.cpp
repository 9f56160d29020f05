// kbh: -O1
// A warp's 32 fp32 accumulators and a tree: shorter sums lose less, never nothing.
#define KBH_MUTANT lanes_32
#include "wrong.hpp"
