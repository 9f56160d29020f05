// kbh: -O1
// A memory whose first row is 0 counts as empty, as before the first token.
#define KBH_MUTANT first_row_decides
#include "wrong.hpp"
