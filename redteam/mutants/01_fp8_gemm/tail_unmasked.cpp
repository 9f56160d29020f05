// kbh: -O1
// The last step of 32 columns reads on into the next rows. Right where K is a multiple of 32.
#define KBH_MUTANT tail_unmasked
#include "wrong.hpp"
