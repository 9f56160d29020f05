// kbh: -O1
// Each tile has its own maximum; a tile that is wholly masked makes -inf minus -inf.
#define KBH_MUTANT masked_tile_nan
#include "wrong.hpp"
