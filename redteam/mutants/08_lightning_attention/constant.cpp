// kbh: -O1
// One number everywhere: finite, of the right type and shape.
#define KBH_MUTANT constant
#include "wrong.hpp"
