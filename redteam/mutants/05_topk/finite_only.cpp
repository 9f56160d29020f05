// kbh: -O1
// Leaves infinities out. Right on data that have none.
#define KBH_MUTANT finite_only
#include "wrong.hpp"
