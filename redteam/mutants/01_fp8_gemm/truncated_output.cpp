// kbh: -O1
// Cuts the output to bf16 instead of rounding it. At most 2^-7 off, as the tolerance allows: only exact data show it.
#define KBH_MUTANT truncated_output
#include "wrong.hpp"
