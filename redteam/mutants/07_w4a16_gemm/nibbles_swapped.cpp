// kbh: -O1
// Takes the high nibble for the even k.
#define KBH_MUTANT nibbles_swapped
#include "wrong.hpp"
