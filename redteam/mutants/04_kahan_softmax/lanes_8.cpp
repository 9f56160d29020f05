// kbh: -O1
// Eight fp32 accumulators and a tree, as a compiler vectorises the loop: each still drops what is below half an ulp.
#define KBH_MUTANT lanes_8
#include "wrong.hpp"
