// kbh: -O1
// Reads one slot too many: right where the last page is full, nearly right on random data.
#define KBH_MUTANT length_plus_one
#include "wrong.hpp"
