// kbh: -O1
// More than 16 rows in tiles of 16; the rest stays 0. Right for every listed M.
#define KBH_MUTANT ragged_rows_dropped
#include "wrong.hpp"
