// kbh: -O1
// Takes page 0 for no page, as some servers do: here it may be in use.
#define KBH_MUTANT page_zero_is_null
#include "wrong.hpp"
