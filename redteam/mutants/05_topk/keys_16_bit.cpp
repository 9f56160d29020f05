// kbh: -O1
// Compares the 16 highest bits only. Right when winners differ by more than one part in 128.
#define KBH_MUTANT keys_16_bit
#include "wrong.hpp"
