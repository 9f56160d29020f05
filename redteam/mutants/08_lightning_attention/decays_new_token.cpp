// kbh: -O1
// decay * (s + k v^T): the same factors in another order.
#define KBH_MUTANT decays_new_token
#include "wrong.hpp"
