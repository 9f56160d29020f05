// kbh: -O1
// Levels about 8, and the rest of the zero point times the sum of x over a group, which is kept in bf16. Right while
// zero points are near 8 or that sum is small.
#define KBH_MUTANT rounded_row_sums
#include "wrong.hpp"
