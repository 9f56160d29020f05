// kbh: -O1
// Skips the last tile of 1024. Mostly no winner stands there when rows are long.
#define KBH_MUTANT last_tile_dropped
#include "wrong.hpp"
