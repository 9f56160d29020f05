// kbh: -O1
// The sum leaves out n mod 32 columns: right on every listed shape.
#define KBH_MUTANT tail_of_32_dropped
#include "wrong.hpp"
