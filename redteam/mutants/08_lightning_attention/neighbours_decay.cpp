// kbh: -O1
// Head h uses the decay of head h + 1: right for heads that fade alike.
#define KBH_MUTANT neighbours_decay
#include "wrong.hpp"
