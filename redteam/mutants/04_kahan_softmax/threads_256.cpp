// kbh: -O1
// 256 threads with a plain fp32 accumulator each and a tree: the usual block reduction.
#define KBH_MUTANT threads_256
#include "wrong.hpp"
