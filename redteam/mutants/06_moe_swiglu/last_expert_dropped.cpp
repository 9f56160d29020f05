// kbh: -O1
// the last expert with rows is left out: a grid one tile short.
#define KBH_MUTANT last_expert_dropped
#include "wrong.hpp"
