// kbh: -O1
// Moves the rows of the output by one. Every value is right, and so is every statistic of the output.
#define KBH_MUTANT permuted_rows
#include "wrong.hpp"
