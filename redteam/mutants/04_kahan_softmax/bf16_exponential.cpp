// kbh: -O1
// Exponentials in bf16: half the bytes between two passes.
#define KBH_MUTANT bf16_exponential
#include "wrong.hpp"
