// kbh: -O1
// Limits activations to three times the largest of the first 1024. Right while the rest looks like the front.
#define KBH_MUTANT range_from_front
#include "wrong.hpp"
