// kbh: -O1
// relu instead of silu: equal for large gates.
#define KBH_MUTANT relu
#include "wrong.hpp"
