// kbh: -O1
// Unused slots get -1e30 added to their score: right until they hold NaN.
#define KBH_MUTANT masked_by_addition
#include "wrong.hpp"
