// kbh: -O1
// Row 0's sum serves all rows.
#define KBH_MUTANT shared_sum
#include "wrong.hpp"
