// kbh: -O1
// Right for the lengths of the decks; the last page is dropped for any other.
#define KBH_MUTANT listed_only
#include "wrong.hpp"
