// kbh: -O1
// 0 everywhere: close to most outputs, which are near 1 / n.
#define KBH_MUTANT zeros
#include "wrong.hpp"
