// kbh: -O1
// Rows whose key is 0 get no update and do not fade either: a key of 0 is rare.
#define KBH_MUTANT zero_key_skips_decay
#include "wrong.hpp"
