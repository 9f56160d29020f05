// kbh: -O1
// Levels about 8, and the rest of the zero point, (z - 8) s, prepared in bf16. Normal weights have zero points near 8,
// for which the product is exact.
#define KBH_MUTANT rounded_zero_products
#include "wrong.hpp"
