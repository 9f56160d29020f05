// kbh: -O1
// Kahan in every thread, but the tree that merges the threads forgets the low parts.
#define KBH_MUTANT kahan_low_dropped
#include "wrong.hpp"
