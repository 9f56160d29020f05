// kbh: -O1
// an expert's last rows mod 16 stay 0: right where every count is a multiple of 16.
#define KBH_MUTANT row_tail_dropped
#include "wrong.hpp"
