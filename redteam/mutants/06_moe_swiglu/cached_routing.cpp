// kbh: -O1
// expert_offsets of the first call of this size are kept: right as long as the routing does not change.
#define KBH_MUTANT cached_routing
#include "wrong.hpp"
