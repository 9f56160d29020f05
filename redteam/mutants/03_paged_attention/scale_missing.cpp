// kbh: -O1
// Does not divide scores by sqrt(head_dim): nominal scores are small either way.
#define KBH_MUTANT scale_missing
#include "wrong.hpp"
