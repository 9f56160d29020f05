// kbh: -O1
// Sequences shorter than a page are left zero: full sequences never are.
#define KBH_MUTANT short_sequences_skipped
#include "wrong.hpp"
