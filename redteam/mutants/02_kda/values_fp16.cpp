// kbh: -O1
// Corrected values in fp16: more digits than bf16, but they overflow at 65504.
#define KBH_MUTANT values_fp16
#include "wrong.hpp"
