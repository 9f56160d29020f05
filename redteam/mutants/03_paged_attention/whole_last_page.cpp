// kbh: -O1
// Counts the last page in full: right where lengths are multiples of the page.
#define KBH_MUTANT whole_last_page
#include "wrong.hpp"
