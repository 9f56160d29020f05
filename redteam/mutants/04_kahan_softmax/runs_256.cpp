// kbh: -O1
// Contiguous runs, their sums added in turn: the two-level sum of many libraries.
#define KBH_MUTANT runs_256
#include "wrong.hpp"
