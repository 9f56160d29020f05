// kbh: -O1
// accumulators are rounded to bf16 after every 16 terms: within the bounds as long as nothing cancels.
#define KBH_MUTANT bf16_accumulation
#include "wrong.hpp"
