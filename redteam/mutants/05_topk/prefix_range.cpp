// kbh: -O1
// Compares 24-bit integers over a range from the first 32 KiB. Right when amplitude is the same everywhere.
#define KBH_MUTANT prefix_range
#include "wrong.hpp"
