// kbh: -O1
// Sums in bf16, rounded after every 64 terms: less than the declared precision.
#define KBH_MUTANT bf16_accumulation
#include "wrong.hpp"
