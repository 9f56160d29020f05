// kbh: -O1
// s_next clamped to +-64: three times what nominal data reach.
#define KBH_MUTANT clamped
#include "wrong.hpp"
