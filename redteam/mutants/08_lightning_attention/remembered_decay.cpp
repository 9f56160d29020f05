// kbh: -O1
// Decays are kept from the first call, like weights: right until they change.
#define KBH_MUTANT remembered_decay
#include "wrong.hpp"
