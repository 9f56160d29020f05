// kbh: -O1
// gelu instead of silu: agrees to first order near 0 and for large gates.
#define KBH_MUTANT gelu
#include "wrong.hpp"
