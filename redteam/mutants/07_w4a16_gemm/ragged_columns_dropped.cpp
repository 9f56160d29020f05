// kbh: -O1
// Columns in tiles of 64; the rest stays 0. Right for every listed N.
#define KBH_MUTANT ragged_columns_dropped
#include "wrong.hpp"
