// kbh: -O1
// Neighbouring tokens are exchanged: right numbers, one row off.
#define KBH_MUTANT swapped_tokens
#include "wrong.hpp"
