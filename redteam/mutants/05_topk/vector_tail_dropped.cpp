// kbh: -O1
// Skips the n mod 4 elements at the end. Right when 4 divides n.
#define KBH_MUTANT vector_tail_dropped
#include "wrong.hpp"
