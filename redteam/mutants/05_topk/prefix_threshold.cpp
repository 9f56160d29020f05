// kbh: -O1
// Takes the threshold from the deviation of the first 32 KiB, and a list of 8 k. Right when amplitude is the same
// everywhere.
#define KBH_MUTANT prefix_threshold
#include "wrong.hpp"
