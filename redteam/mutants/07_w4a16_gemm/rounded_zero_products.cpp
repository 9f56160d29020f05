// Prepares z s in bf16. The product needs twelve bits; on normal data the loss hides in the tolerance.
#define KBH_MUTANT rounded_zero_products
#include "wrong.hpp"
