// kbh: -O1
// silu as g e^g / (1 + e^g): right until e^g overflows at g = 88, then NaN.
#define KBH_MUTANT overflowing_silu
#include "wrong.hpp"
