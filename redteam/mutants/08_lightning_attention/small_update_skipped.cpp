// kbh: -O1
// A token 2^-12 as large as the memory is not written: cannot be seen in bf16.
#define KBH_MUTANT small_update_skipped
#include "wrong.hpp"
