// kbh: -O1
// The sum leaves out the last tile of 1024 columns.
#define KBH_MUTANT last_tile_dropped
#include "wrong.hpp"
