// kbh: -O1
// Scales in eight bits of the largest of all, as formats with quantised scales do. Right while columns are alike.
#define KBH_MUTANT scales_in_8_bits
#include "wrong.hpp"
