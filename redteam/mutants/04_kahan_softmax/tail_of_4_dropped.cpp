// kbh: -O1
// The sum leaves out n mod 4 columns: right on every listed shape.
#define KBH_MUTANT tail_of_4_dropped
#include "wrong.hpp"
