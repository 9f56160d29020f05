// kbh: -O1
// Tiles of 1024 keep max(8, k/4). Winners spread evenly over the tiles of random data.
#define KBH_MUTANT tile_quarter
#include "wrong.hpp"
