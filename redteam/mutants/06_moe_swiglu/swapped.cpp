// kbh: -O1
// silu of up instead of gate: silu is linear near 0, so the product is nearly the same for small numbers.
#define KBH_MUTANT swapped
#include "wrong.hpp"
