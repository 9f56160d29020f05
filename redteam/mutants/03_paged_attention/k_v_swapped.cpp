// kbh: -O1
// Takes the second half of a row for the key.
#define KBH_MUTANT k_v_swapped
#include "wrong.hpp"
