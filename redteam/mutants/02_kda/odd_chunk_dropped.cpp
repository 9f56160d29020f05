// kbh: -O1
// Takes chunks two at a time and leaves a last odd one zero. Every listed shape has an even number.
#define KBH_MUTANT odd_chunk_dropped
#include "wrong.hpp"
