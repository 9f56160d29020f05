// kbh: -O1
// Writes outputs by way of fp16, which has nothing below 6e-8; nominal outputs are near 2e-3.
#define KBH_MUTANT output_fp16
#include "wrong.hpp"
