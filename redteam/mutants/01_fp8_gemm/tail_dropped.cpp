// kbh: -O1
// Sums whole steps of 32 columns. Right where K is a multiple of 32.
#define KBH_MUTANT tail_dropped
#include "wrong.hpp"
