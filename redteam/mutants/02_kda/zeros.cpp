// kbh: -O1
// Zeros everywhere: the public tolerance of 0.05 is wider than the answer.
#define KBH_MUTANT zeros
#include "wrong.hpp"
