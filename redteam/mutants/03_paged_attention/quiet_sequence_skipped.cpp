// kbh: -O1
// Sequences whose values are 8 times smaller than the largest stay zero: nothing in a total error.
#define KBH_MUTANT quiet_sequence_skipped
#include "wrong.hpp"
