// kbh: -O1
// Gates are left out: plain delta rule.
#define KBH_MUTANT no_decay
#include "wrong.hpp"
