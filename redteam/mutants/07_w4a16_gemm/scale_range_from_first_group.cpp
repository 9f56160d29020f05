// kbh: -O1
// No scale is taken for larger than four times that of its column's first group. Normal weights never have one.
#define KBH_MUTANT scale_range_from_first_group
#include "wrong.hpp"
