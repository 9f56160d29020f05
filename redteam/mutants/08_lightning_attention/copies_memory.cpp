// kbh: -O1
// Returns s as s_next and reads it: nearly right where a single token changes little.
#define KBH_MUTANT copies_memory
#include "wrong.hpp"
