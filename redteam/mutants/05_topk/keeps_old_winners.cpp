// kbh: -O1
// Former winners stay candidates for ever. Right while inputs only grow.
#define KBH_MUTANT keeps_old_winners
#include "wrong.hpp"
