// kbh: -O1
// Rows of x below 1/16 of the largest are taken for 0. Right while all rows have one amplitude.
#define KBH_MUTANT quiet_rows_skipped
#include "wrong.hpp"
