// kbh: -O1
// Skips the n mod 1024 elements at the end. Right when 1024 divides n.
#define KBH_MUTANT ragged_tail_dropped
#include "wrong.hpp"
