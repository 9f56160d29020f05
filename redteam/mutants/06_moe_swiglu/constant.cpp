// kbh: -O1
// out is 0.001, about the rms of the nominal answer.
#define KBH_MUTANT constant
#include "wrong.hpp"
