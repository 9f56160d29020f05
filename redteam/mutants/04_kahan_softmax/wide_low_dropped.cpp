// kbh: -O1
// fp64 in every thread, rounded to fp32 before the tree that merges the threads.
#define KBH_MUTANT wide_low_dropped
#include "wrong.hpp"
