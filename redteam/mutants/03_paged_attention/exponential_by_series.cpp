// kbh: -O1
// Takes a cubic for the exponential: exact enough for nominal scores.
#define KBH_MUTANT exponential_by_series
#include "wrong.hpp"
