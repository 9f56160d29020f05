// kbh: -O1
// Loops over length / page_size pages less one: the last page never counts.
#define KBH_MUTANT last_page_dropped
#include "wrong.hpp"
