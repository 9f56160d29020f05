// kbh: -O1
// Gates rounded to bf16. Nominal gates are small, so their error is too; it adds up where all err to one side.
#define KBH_MUTANT bf16_gate
#include "wrong.hpp"
