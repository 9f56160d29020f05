// kbh: -O1
// the former call's answer while the offsets and four elements of hidden stay what they were.
#define KBH_MUTANT checked_memo
#include "wrong.hpp"
