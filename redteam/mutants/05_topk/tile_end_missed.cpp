// kbh: -O1
// Skips the last element of each tile of 1024. One in a thousand: mostly none of them wins.
#define KBH_MUTANT tile_end_missed
#include "wrong.hpp"
