// kbh: -O1
// Adds four parts of K in bf16. Inside the tolerance on nominal data: only exact data show the rounding.
#define KBH_MUTANT bf16_split_k
#include "wrong.hpp"
