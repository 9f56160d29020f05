// kbh: -O1
// I mod 16 columns stay 0: right for every listed shape, whose I are multiples of 16.
#define KBH_MUTANT column_ragged
#include "wrong.hpp"
