// kbh: -O1
// Brings each row of x to full range by a power of two. Exact, but a row of zeros becomes NaN.
#define KBH_MUTANT rows_rescaled
#include "wrong.hpp"
