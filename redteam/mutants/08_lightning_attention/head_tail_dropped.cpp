// kbh: -O1
// Memories are taken in fours and the rest is left out: right for every listed shape.
#define KBH_MUTANT head_tail_dropped
#include "wrong.hpp"
