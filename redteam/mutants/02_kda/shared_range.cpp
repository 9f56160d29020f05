// kbh: -O1
// v in 256 steps of one range for the whole tensor: good enough where all heads and tokens are alike.
#define KBH_MUTANT shared_range
#include "wrong.hpp"
