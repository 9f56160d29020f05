// kbh: -O1
// Follows the lengths of the former call: right as long as all sequences are always full.
#define KBH_MUTANT lengths_kept
#include "wrong.hpp"
