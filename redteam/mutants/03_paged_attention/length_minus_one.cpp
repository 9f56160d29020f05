// kbh: -O1
// Drops the last token: one in a thousand of nearly equal weights.
#define KBH_MUTANT length_minus_one
#include "wrong.hpp"
