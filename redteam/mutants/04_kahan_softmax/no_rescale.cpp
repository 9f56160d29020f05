// kbh: -O1
// A running maximum in one pass, but what was added before it moved is not rescaled.
#define KBH_MUTANT no_rescale
#include "wrong.hpp"
