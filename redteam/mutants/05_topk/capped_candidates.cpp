// kbh: -O1
// Lists all that is not below the k-th value, 4 k at most. Right without a crowd of ties.
#define KBH_MUTANT capped_candidates
#include "wrong.hpp"
