// kbh: -O1
// Columns with scales below 1/16 of the largest are taken for 0. Right while all have one amplitude.
#define KBH_MUTANT quiet_columns_skipped
#include "wrong.hpp"
