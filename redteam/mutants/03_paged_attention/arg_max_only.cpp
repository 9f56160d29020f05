// kbh: -O1
// The value of the best token: right where one token holds all weight.
#define KBH_MUTANT arg_max_only
#include "wrong.hpp"
