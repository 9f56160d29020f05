// kbh: -O1
// Keeps x as multiples of 2^-6. Nominal elements that lose bits are the small ones that hardly count.
#define KBH_MUTANT fixed_point
#include "wrong.hpp"
