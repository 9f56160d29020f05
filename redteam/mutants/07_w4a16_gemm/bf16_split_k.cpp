// kbh: -O1
// K in four parts, each rounded to bf16 and added in bf16: less than the declared precision, by too little to see on
// normal data.
#define KBH_MUTANT bf16_split_k
#include "wrong.hpp"
