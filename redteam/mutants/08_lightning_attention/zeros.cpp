// kbh: -O1
// Zeros everywhere: inside a loose absolute tolerance when the data are small.
#define KBH_MUTANT zeros
#include "wrong.hpp"
