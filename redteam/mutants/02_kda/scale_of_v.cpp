// kbh: -O1
// Scales by V^-1/2. Every listed shape has K = V.
#define KBH_MUTANT scale_of_v
#include "wrong.hpp"
