// kbh: -O1
// The running maximum starts at 0: right unless all scores are far below 0.
#define KBH_MUTANT max_from_zero
#include "wrong.hpp"
