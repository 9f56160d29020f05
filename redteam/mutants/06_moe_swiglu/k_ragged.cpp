// kbh: -O1
// H mod 16 terms are left out: right for every listed shape, whose H are multiples of 64.
#define KBH_MUTANT k_ragged
#include "wrong.hpp"
