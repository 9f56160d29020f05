// kbh: -O1
// the sigmoid is 1/2 + g/4 between 0 and 1 (a "hard" sigmoid): right for small and for very large gates.
#define KBH_MUTANT clamped_sigmoid
#include "wrong.hpp"
