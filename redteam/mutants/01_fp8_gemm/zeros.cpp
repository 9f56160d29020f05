// kbh: -O1
// Writes zeros. The output is finite and of the right shape.
#define KBH_MUTANT zeros
#include "wrong.hpp"
