// kbh: -O1
// Looks the index up by value, which finds the first of equals again and again. Right while no value repeats.
#define KBH_MUTANT index_by_value
#include "wrong.hpp"
