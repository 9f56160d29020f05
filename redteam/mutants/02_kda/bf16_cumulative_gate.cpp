// kbh: -O1
// Sums of gates rounded to bf16: half a percent in the exponent, little under nominal decay.
#define KBH_MUTANT bf16_cumulative_gate
#include "wrong.hpp"
