// kbh: -O1
// v in 256 steps of a range found in its first 64 KiB, a look at the data that costs nothing.
#define KBH_MUTANT prefix_range
#include "wrong.hpp"
