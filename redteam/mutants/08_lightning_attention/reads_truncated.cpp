// kbh: -O1
// o is cut to bf16 instead of rounded: inside every tolerance, wrong where data are exact.
#define KBH_MUTANT reads_truncated
#include "wrong.hpp"
