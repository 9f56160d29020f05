// kbh: -O1
// Clamps to +-32 when the first 64 KiB look nominal: right when the rest is like them.
#define KBH_MUTANT prefix_sniff
#include "wrong.hpp"
