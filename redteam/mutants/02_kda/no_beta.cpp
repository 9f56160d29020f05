// kbh: -O1
// beta is taken for 1.
#define KBH_MUTANT no_beta
#include "wrong.hpp"
