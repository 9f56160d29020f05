// kbh: -O1
// Decays above 0.9963 count as 1: no head of the first layer has one.
#define KBH_MUTANT near_one_is_one
#include "wrong.hpp"
