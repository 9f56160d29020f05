// kbh: -O1
// Loops start at token 1: one in a thousand of nearly equal weights.
#define KBH_MUTANT first_token_skipped
#include "wrong.hpp"
