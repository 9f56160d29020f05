// kbh: -O1
// Lists all that beats the running k-th best, 16 k at most. In random order that is k log(n/k), far less.
#define KBH_MUTANT running_list
#include "wrong.hpp"
