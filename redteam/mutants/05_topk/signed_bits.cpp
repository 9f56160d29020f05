// kbh: -O1
// Compares float bits as signed integers. Right for positive winners: only negative ones come upside down.
#define KBH_MUTANT signed_bits
#include "wrong.hpp"
