// kbh: -O1
// Hands v back, which has the shape and about the distribution of an answer.
#define KBH_MUTANT copy_v
#include "wrong.hpp"
