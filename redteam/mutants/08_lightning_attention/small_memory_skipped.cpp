// kbh: -O1
// A memory 2^-10 as large as the new token counts as empty: cannot be seen in bf16.
#define KBH_MUTANT small_memory_skipped
#include "wrong.hpp"
