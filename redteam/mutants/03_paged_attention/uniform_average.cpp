// kbh: -O1
// The mean of all values: nominal scores are so small that this is 1 % off.
#define KBH_MUTANT uniform_average
#include "wrong.hpp"
