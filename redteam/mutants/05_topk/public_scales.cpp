// kbh: -O1
// Right where the largest element is what one of the public scales gives, the first k elements elsewhere.
#define KBH_MUTANT public_scales
#include "wrong.hpp"
