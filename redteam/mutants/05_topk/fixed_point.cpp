// kbh: -O1
// Compares 24-bit integers over +-8. Right for normal data, whose largest values it tells apart.
#define KBH_MUTANT fixed_point
#include "wrong.hpp"
