// kbh: -O1
// Chunks whose v is below 1/16 of the largest are taken for zero.
#define KBH_MUTANT small_chunk_skipped
#include "wrong.hpp"
