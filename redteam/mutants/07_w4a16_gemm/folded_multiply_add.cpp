// kbh: -O1
// Dequantises with one bf16 multiply-add, (128 + q) s - (128 + z) s. In fp16, with 1024, the same trick is right.
#define KBH_MUTANT folded_multiply_add
#include "wrong.hpp"
