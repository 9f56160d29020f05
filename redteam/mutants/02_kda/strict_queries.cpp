// kbh: -O1
// Queries do not see their own token: a mask that is strict where it must not be.
#define KBH_MUTANT strict_queries
#include "wrong.hpp"
