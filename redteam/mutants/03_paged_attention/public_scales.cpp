// kbh: -O1
// Looks at the size of queries and cache and averages unless it is that of a public case.
#define KBH_MUTANT public_scales
#include "wrong.hpp"
