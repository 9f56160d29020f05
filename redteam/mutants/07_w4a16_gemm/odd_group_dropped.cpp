// kbh: -O1
// Takes two groups at a time and leaves out an odd last one. Right for every listed K.
#define KBH_MUTANT odd_group_dropped
#include "wrong.hpp"
