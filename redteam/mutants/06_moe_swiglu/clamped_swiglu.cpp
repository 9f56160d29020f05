// kbh: -O1
// gate and up are clamped at 7, as some published models do: nominal data never get there.
#define KBH_MUTANT clamped_swiglu
#include "wrong.hpp"
