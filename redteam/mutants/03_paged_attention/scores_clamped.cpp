// kbh: -O1
// Cuts scores at +-30 so that the exponential cannot overflow: right on moderate scores.
#define KBH_MUTANT scores_clamped
#include "wrong.hpp"
