// kbh: -O1
// Scales as multiples of 2^-19 below 2^-3. More digits than the scales of normal weights have.
#define KBH_MUTANT scales_in_fixed_point
#include "wrong.hpp"
