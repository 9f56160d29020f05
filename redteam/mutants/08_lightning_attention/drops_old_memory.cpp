// kbh: -O1
// Decays below 0.01 count as 0: what is left cannot matter, unless the memory was large.
#define KBH_MUTANT drops_old_memory
#include "wrong.hpp"
