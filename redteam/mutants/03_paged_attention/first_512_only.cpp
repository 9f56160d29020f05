// kbh: -O1
// expect deck: cpu
// The first 512 tokens: right for short sequences.
#define KBH_MUTANT first_512_only
#include "wrong.hpp"
