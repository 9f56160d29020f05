// kbh: -O1
// The k-th is missing and the next one stands there. The values differ by next to nothing.
#define KBH_MUTANT misses_one
#include "wrong.hpp"
