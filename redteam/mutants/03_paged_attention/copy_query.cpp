// kbh: -O1
// Returns the queries: right shape, right dtype, plausible size.
#define KBH_MUTANT copy_query
#include "wrong.hpp"
