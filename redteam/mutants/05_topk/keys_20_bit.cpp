// kbh: -O1
// Compares the 20 highest bits only. Right when winners differ by more than one part in 2048.
#define KBH_MUTANT keys_20_bit
#include "wrong.hpp"
