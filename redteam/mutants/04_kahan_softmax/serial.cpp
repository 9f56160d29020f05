// kbh: -O1
// One fp32 accumulator: right to 1e-6 or so, and nobody sees more on random logits.
#define KBH_MUTANT serial
#include "wrong.hpp"
