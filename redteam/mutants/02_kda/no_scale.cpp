// kbh: -O1
// K^-1/2 is left out.
#define KBH_MUTANT no_scale
#include "wrong.hpp"
