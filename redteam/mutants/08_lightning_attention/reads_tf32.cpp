// kbh: -O1
// o reads s_next rounded to tf32: invisible behind bf16 unless o is small beside what is stored.
#define KBH_MUTANT reads_tf32
#include "wrong.hpp"
