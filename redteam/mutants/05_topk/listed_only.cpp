// kbh: -O1
// Right for the public benchmark's shapes, the first k elements elsewhere. Passes whoever tests those alone.
#define KBH_MUTANT listed_only
#include "wrong.hpp"
