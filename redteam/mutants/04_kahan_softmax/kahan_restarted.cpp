// kbh: -O1
// Kahan over 64 columns at a time, the pieces added plainly: the compensation is thrown away 64 times a row.
#define KBH_MUTANT kahan_restarted
#include "wrong.hpp"
