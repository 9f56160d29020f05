// kbh: -O1
// The last row of each memory is copied: 1 of 128 rows.
#define KBH_MUTANT last_row_dropped
#include "wrong.hpp"
