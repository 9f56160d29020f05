// kbh: -O1
// The right set with the first and the last place exchanged. A comparison of sets sees nothing.
#define KBH_MUTANT unsorted
#include "wrong.hpp"
