// kbh: -O1
// The first k elements in their own order. Values and indices belong together.
#define KBH_MUTANT copy_prefix
#include "wrong.hpp"
