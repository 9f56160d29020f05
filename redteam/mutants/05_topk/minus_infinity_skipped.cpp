// kbh: -O1
// -inf marks an empty place. Right while k elements are finite.
#define KBH_MUTANT minus_infinity_skipped
#include "wrong.hpp"
