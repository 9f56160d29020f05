// kbh: -O1
// Indices count from 1. The values are all right.
#define KBH_MUTANT index_from_one
#include "wrong.hpp"
