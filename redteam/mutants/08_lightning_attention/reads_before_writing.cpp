// kbh: -O1
// o = q s: the new token is written, but not read by its own query.
#define KBH_MUTANT reads_before_writing
#include "wrong.hpp"
