// kbh: -O1
// Has room for 1.5 times the mean length: right while lengths are alike.
#define KBH_MUTANT balanced_lengths
#include "wrong.hpp"
