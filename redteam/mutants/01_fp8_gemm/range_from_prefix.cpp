// kbh: -O1
// Keeps x in 128 steps of the largest of its first 64 KiB. Right where the rest is like the beginning.
#define KBH_MUTANT range_from_prefix
#include "wrong.hpp"
