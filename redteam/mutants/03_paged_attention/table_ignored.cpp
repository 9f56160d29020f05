// kbh: -O1
// Takes pages to lie in order: right for a table that counts up.
#define KBH_MUTANT table_ignored
#include "wrong.hpp"
