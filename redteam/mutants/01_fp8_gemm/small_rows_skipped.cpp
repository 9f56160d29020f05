// kbh: -O1
// Takes rows of x below 1/64 of the largest element for zeros. Nominal rows are all alike.
#define KBH_MUTANT small_rows_skipped
#include "wrong.hpp"
