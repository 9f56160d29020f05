// kbh: -O1
// exp2(x log2e - m log2e) with both products rounded: right for small logits, wrong when they are shifted by 200.
#define KBH_MUTANT rounded_products
#include "wrong.hpp"
