// kbh: -O1
// Loops start at 1. The first element wins once in n/k rows.
#define KBH_MUTANT first_skipped
#include "wrong.hpp"
