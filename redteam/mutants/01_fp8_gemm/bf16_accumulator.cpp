// kbh: -O1
// Rounds the sum to bf16 every 64 columns. Inside the tolerance on nominal data up to some hundred columns.
#define KBH_MUTANT bf16_accumulator
#include "wrong.hpp"
