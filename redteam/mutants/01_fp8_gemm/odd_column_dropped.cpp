// kbh: -O1
// Sums columns in pairs. Right for even K.
#define KBH_MUTANT odd_column_dropped
#include "wrong.hpp"
