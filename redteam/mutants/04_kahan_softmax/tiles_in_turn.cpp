// kbh: -O1
// Each tile is reduced by a tree; the tiles are added plainly: the outer loop is where it loses.
#define KBH_MUTANT tiles_in_turn
#include "wrong.hpp"
