// kbh: -O1
// Unused slots of the last page count with score 0 in the denominator: right where pages are full.
#define KBH_MUTANT padding_scores_zero
#include "wrong.hpp"
