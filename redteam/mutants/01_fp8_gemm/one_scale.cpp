// kbh: -O1
// Scales every column by weight_scale[0]. On nominal data scales differ by a few percent.
#define KBH_MUTANT one_scale
#include "wrong.hpp"
