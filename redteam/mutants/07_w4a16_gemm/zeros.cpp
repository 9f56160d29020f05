// kbh: -O1
// Returns zeros. Takes no time, and a loose absolute tolerance would let it pass.
#define KBH_MUTANT zeros
#include "wrong.hpp"
