// kbh: -O1
// Maximum and sum are kept from the former call while n and the row's first element are the same.
#define KBH_MUTANT remembered_sum
#include "wrong.hpp"
