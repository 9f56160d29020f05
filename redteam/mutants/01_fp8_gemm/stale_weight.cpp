// kbh: -O1
// Decodes the weights once for each size. Right as long as a process sees one state of each.
#define KBH_MUTANT stale_weight
#include "wrong.hpp"
