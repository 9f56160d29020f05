// kbh: -O1
// o reads s_next rounded to fp16: as good as tf32, up to 65504.
#define KBH_MUTANT reads_fp16
#include "wrong.hpp"
