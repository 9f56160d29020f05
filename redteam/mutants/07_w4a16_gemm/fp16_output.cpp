// kbh: -O1
// The answer passes through fp16. More digits than bf16 has, and infinite beyond 65504.
#define KBH_MUTANT fp16_output
#include "wrong.hpp"
