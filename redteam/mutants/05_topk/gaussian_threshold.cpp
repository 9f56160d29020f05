// kbh: -O1
// Candidates are what exceeds mean + z sigma of the row, in a list of 8 k. Right on normal data, 4 k candidates on
// average.
#define KBH_MUTANT gaussian_threshold
#include "wrong.hpp"
