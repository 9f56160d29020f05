// kbh: -O1
// Heads whose values are 8 times smaller than the largest of the sequence stay zero.
#define KBH_MUTANT quiet_head_skipped
#include "wrong.hpp"
