// kbh: -O1
// h = memory & (H - 1): right for powers of two.
#define KBH_MUTANT masked_head
#include "wrong.hpp"
