// kbh: -O1
// Returns the activations. They have the distribution of a typical answer.
#define KBH_MUTANT copy_input
#include "wrong.hpp"
