// kbh: -O1
// exp(x - (m + log(sum))): neat, one subtraction less, and the logarithm's rounding scales the whole row.
#define KBH_MUTANT log_sum_exp
#include "wrong.hpp"
