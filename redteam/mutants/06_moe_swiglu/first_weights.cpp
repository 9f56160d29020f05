// kbh: -O1
// weights of the first call of this size are kept: right for one object, wrong for a second.
#define KBH_MUTANT first_weights
#include "wrong.hpp"
