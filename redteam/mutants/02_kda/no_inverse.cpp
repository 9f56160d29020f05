// kbh: -O1
// (I + L)^-1 is taken for I.
#define KBH_MUTANT no_inverse
#include "wrong.hpp"
