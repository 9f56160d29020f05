// kbh: -O1
// Gates below e^-1 are taken for e^-1, so that exponents stay small. Nominal ones never get there.
#define KBH_MUTANT gate_clamped
#include "wrong.hpp"
