// kbh: -O1
// accumulators are rounded to fp16 after every 16 terms: more bits than bf16, less range.
#define KBH_MUTANT fp16_accumulation
#include "wrong.hpp"
