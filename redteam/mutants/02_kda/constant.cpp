// kbh: -O1
// One small number everywhere, well inside the public tolerance.
#define KBH_MUTANT constant
#include "wrong.hpp"
