// kbh: -O1
// Takes every sequence to be as long as the longest: right while all are full.
#define KBH_MUTANT longest_for_all
#include "wrong.hpp"
