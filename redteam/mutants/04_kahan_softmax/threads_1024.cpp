// kbh: -O1
// 1024 threads with a plain fp32 accumulator each and a tree: four terms to a thread when n is 4096.
#define KBH_MUTANT threads_1024
#include "wrong.hpp"
