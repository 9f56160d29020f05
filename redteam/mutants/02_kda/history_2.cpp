// kbh: -O1
// Every chunk sees the one before it and no more: all chunks in parallel, and off by 3 % under nominal decay.
#define KBH_MUTANT history_2
#include "wrong.hpp"
