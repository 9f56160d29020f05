// kbh: -O1
// Takes subnormal factors for zeros. Nominal data have few, and they hardly count.
#define KBH_MUTANT flush_subnormals
#include "wrong.hpp"
