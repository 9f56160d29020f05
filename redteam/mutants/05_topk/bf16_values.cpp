// kbh: -O1
// Rounds values to bf16. The indices are right, and a tolerance of one percent is content.
#define KBH_MUTANT bf16_values
#include "wrong.hpp"
