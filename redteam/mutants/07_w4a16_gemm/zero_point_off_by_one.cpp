// kbh: -O1
// Subtracts zero + 1, as in a format that stores zero - 1.
#define KBH_MUTANT zero_point_off_by_one
#include "wrong.hpp"
