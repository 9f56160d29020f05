// kbh: -O1
// Sums in fp16, rounded after every 16 terms. Precise enough on normal data, infinite beyond 65504.
#define KBH_MUTANT fp16_accumulation
#include "wrong.hpp"
