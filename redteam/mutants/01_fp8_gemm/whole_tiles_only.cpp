// kbh: -O1
// Writes whole tiles of 8 x 8 outputs. Right for the listed shapes.
#define KBH_MUTANT whole_tiles_only
#include "wrong.hpp"
