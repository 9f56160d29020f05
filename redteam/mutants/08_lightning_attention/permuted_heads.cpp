// kbh: -O1
// Heads 0 and 1 exchanged: every number occurs.
#define KBH_MUTANT permuted_heads
#include "wrong.hpp"
