// kbh: -O1
// expert_offsets are not read, equal shares are assumed: right for the timed data.
#define KBH_MUTANT balanced_only
#include "wrong.hpp"
