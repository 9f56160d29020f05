// kbh: -O1
// an expert's last row meets the next expert: <= instead of < in the search; one row in sixty-four is wrong.
#define KBH_MUTANT boundary_row
#include "wrong.hpp"
