// kbh: -O1
// Sums of gates leave out the token's own: one place off in the cumulative sum.
#define KBH_MUTANT gate_exclusive
#include "wrong.hpp"
