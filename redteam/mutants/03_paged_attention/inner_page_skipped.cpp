// kbh: -O1
// Skips the second page: one in a hundred of nearly equal weights.
#define KBH_MUTANT inner_page_skipped
#include "wrong.hpp"
