// kbh: -O1
// (I + L)^-1 is taken for I - L: off by 4 % under nominal keys.
#define KBH_MUTANT inverse_1
#include "wrong.hpp"
