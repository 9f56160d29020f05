// kbh: -O1
// What lies 48 below the maximum is written as 0: nominal logits do not reach that far.
#define KBH_MUTANT small_terms_skipped
#include "wrong.hpp"
