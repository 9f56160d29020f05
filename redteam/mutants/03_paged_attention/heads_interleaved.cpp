// kbh: -O1
// Head h reads head h mod num_kv_heads of the cache, where h / group is meant.
#define KBH_MUTANT heads_interleaved
#include "wrong.hpp"
