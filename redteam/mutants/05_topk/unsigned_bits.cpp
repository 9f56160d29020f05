// kbh: -O1
// Compares float bits as unsigned integers. Right while all that matters is positive and nothing is negative.
#define KBH_MUTANT unsigned_bits
#include "wrong.hpp"
