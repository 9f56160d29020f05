// kbh: -O1
// Unused slots get weight 0 and are added: right until they hold NaN.
#define KBH_MUTANT masked_by_weight
#include "wrong.hpp"
