// kbh: -O1
// Tiles of 64 tokens, and what is left over is dropped: right where lengths are multiples of 64.
#define KBH_MUTANT tail_of_64_dropped
#include "wrong.hpp"
