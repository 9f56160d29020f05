// kbh: -O1
// The maximum of the first 1024 columns serves the row: right while no later logit is 88 above it.
#define KBH_MUTANT first_tile_maximum
#include "wrong.hpp"
