// kbh: -O1
// Sums are not scaled when the running maximum rises: nominal scores hardly differ.
#define KBH_MUTANT no_rescale
#include "wrong.hpp"
