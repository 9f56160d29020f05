// Takes the zero point out of the sum, with the sum of x over a group in bf16. Right while that sum is small.
#define KBH_MUTANT rounded_row_sums
#include "wrong.hpp"
