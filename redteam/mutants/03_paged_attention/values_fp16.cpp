// kbh: -O1
// Passes values through fp16: exact for values of everyday size.
#define KBH_MUTANT values_fp16
#include "wrong.hpp"
