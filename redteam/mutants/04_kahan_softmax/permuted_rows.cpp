// kbh: -O1
// Rows change places; a single row is turned by one column.
#define KBH_MUTANT permuted_rows
#include "wrong.hpp"
