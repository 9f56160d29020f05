// kbh: -O1
// s_next rounded to tf32, as a tensor core takes it: 2e-4 away, o looks right.
#define KBH_MUTANT state_tf32
#include "wrong.hpp"
