// kbh: -O1
// Sums K - 1 columns. At K = 4096 that is an error of 1.4 %.
#define KBH_MUTANT last_column_dropped
#include "wrong.hpp"
