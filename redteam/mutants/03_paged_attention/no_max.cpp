// kbh: -O1
// Exponential of the bare score: right until a score exceeds 88.
#define KBH_MUTANT no_max
#include "wrong.hpp"
