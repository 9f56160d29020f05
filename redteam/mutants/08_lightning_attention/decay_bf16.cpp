// kbh: -O1
// decay rounded to bf16 like q, k and v: 1e-3 away.
#define KBH_MUTANT decay_bf16
#include "wrong.hpp"
