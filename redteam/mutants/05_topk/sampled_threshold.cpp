// kbh: -O1
// Takes the threshold from the first 1024 elements, and a list of 8 k. Right when they are like the others.
#define KBH_MUTANT sampled_threshold
#include "wrong.hpp"
