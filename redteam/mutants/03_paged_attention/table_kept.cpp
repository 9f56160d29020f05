// kbh: -O1
// Follows the block table of the former call: a schedule made once and reused while its size is the same.
#define KBH_MUTANT table_kept
#include "wrong.hpp"
