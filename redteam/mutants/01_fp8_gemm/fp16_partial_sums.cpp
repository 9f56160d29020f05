// kbh: -O1
// Keeps the sums of four parts of K in fp16. Precise enough, until one exceeds 65504.
#define KBH_MUTANT fp16_partial_sums
#include "wrong.hpp"
