// kbh: -O1
// Values are written as they are, times beta: gated linear attention without the delta rule.
#define KBH_MUTANT no_delta_rule
#include "wrong.hpp"
