// kbh: -O1
// A single wrong element: a race or an edge that averages do not show.
#define KBH_MUTANT one_wrong
#include "wrong.hpp"
