// kbh: -O1
// Sums in 32-bit fixed point, multiples of 2^-12. More digits than needed for nominal amplitudes, too few for small
// ones.
#define KBH_MUTANT fixed_point_sums
#include "wrong.hpp"
