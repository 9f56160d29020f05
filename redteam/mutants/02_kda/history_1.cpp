// kbh: -O1
// Chunks do not hand a state on. Under nominal decay most of a row comes from its own chunk.
#define KBH_MUTANT history_1
#include "wrong.hpp"
