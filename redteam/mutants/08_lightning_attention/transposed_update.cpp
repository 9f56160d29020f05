// kbh: -O1
// Adds v k^T: the sum of all elements is right.
#define KBH_MUTANT transposed_update
#include "wrong.hpp"
