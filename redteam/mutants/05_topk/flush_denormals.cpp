// kbh: -O1
// Denormals compare as 0, as with flush to zero. Right unless winners are denormal.
#define KBH_MUTANT flush_denormals
#include "wrong.hpp"
