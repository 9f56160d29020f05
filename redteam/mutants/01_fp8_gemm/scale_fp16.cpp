// kbh: -O1
// Keeps the scales in fp16. Right to 2^-11 on nominal data, whose scales are 2e-4; small ones vanish.
#define KBH_MUTANT scale_fp16
#include "wrong.hpp"
