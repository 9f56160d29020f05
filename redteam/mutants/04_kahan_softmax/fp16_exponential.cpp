// kbh: -O1
// Exponentials in fp16: half the bytes between two passes.
#define KBH_MUTANT fp16_exponential
#include "wrong.hpp"
