// kbh: -O1
// Memories 32 times smaller than the largest count as empty: nominal ones are alike.
#define KBH_MUTANT smallest_skipped
#include "wrong.hpp"
