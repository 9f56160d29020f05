// kbh: -O1
// Takes row 0's threshold for all rows, and a list of 8 k. Right when rows are alike.
#define KBH_MUTANT row0_threshold
#include "wrong.hpp"
