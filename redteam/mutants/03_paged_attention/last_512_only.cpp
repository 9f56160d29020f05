// kbh: -O1
// expect deck: cpu
// A window of the last 512 tokens: right for short sequences.
#define KBH_MUTANT last_512_only
#include "wrong.hpp"
