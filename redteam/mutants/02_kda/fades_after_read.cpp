// kbh: -O1
// Keys meet the memory before the token's gate has acted on it: the order of two steps exchanged.
#define KBH_MUTANT fades_after_read
#include "wrong.hpp"
