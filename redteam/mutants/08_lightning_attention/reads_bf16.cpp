// kbh: -O1
// o reads s_next rounded to bf16: o is bf16 anyway.
#define KBH_MUTANT reads_bf16
#include "wrong.hpp"
