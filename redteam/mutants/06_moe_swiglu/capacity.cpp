// kbh: -O1
// an expert takes the average + 128 rows and drops the others, as capacity-factor routing does: right for balanced
// data.
#define KBH_MUTANT capacity
#include "wrong.hpp"
