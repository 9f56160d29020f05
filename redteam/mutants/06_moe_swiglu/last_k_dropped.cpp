// kbh: -O1
// the sums end one term early: a loop bound off by one, hidden below a tolerance of a few percent at H = 4096.
#define KBH_MUTANT last_k_dropped
#include "wrong.hpp"
