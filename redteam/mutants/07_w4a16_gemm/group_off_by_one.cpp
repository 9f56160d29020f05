// kbh: -O1
// Uses scale and zero point of the next group. They are nearly alike for normal weights.
#define KBH_MUTANT group_off_by_one
#include "wrong.hpp"
