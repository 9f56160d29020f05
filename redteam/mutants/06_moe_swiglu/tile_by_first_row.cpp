// kbh: -O1
// a tile of 16 rows meets the expert of its first row: right where every count is a multiple of 16.
#define KBH_MUTANT tile_by_first_row
#include "wrong.hpp"
