// kbh: -O1
// The state in fp16 between chunks: more digits than bf16, but it ends at 6e-8.
#define KBH_MUTANT state_fp16
#include "wrong.hpp"
