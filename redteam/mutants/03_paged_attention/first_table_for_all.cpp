// kbh: -O1
// All sequences follow the first one's table.
#define KBH_MUTANT first_table_for_all
#include "wrong.hpp"
