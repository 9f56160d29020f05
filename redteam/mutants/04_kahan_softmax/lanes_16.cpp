// kbh: -O1
// Sixteen fp32 accumulators and a tree: each still drops what is below half an ulp.
#define KBH_MUTANT lanes_16
#include "wrong.hpp"
