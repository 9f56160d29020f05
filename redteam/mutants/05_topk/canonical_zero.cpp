// kbh: -O1
// Returns -0 as +0. They are equal, but the bits are not those of the element that the index names.
#define KBH_MUTANT canonical_zero
#include "wrong.hpp"
