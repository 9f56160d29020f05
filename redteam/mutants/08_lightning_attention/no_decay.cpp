// kbh: -O1
// The memory does not fade: right to 1e-3 for heads that forget slowly.
#define KBH_MUTANT no_decay
#include "wrong.hpp"
