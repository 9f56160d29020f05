// kbh: -O1
// The state in 16-bit integers of 2^-14: precise at the nominal amplitude, and only there.
#define KBH_MUTANT state_fixed_point
#include "wrong.hpp"
