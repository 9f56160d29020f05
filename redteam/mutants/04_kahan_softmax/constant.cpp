// kbh: -O1
// 1 / n everywhere: what softmax is of equal logits.
#define KBH_MUTANT constant
#include "wrong.hpp"
