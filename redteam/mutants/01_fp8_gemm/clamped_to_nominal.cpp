// kbh: -O1
// Clamps x to -4 .. 4. Nominal data stay inside.
#define KBH_MUTANT clamped_to_nominal
#include "wrong.hpp"
