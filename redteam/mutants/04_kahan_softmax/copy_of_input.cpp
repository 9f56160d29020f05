// kbh: -O1
// Returns the logits.
#define KBH_MUTANT copy_of_input
#include "wrong.hpp"
