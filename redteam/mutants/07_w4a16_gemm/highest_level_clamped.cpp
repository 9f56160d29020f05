// kbh: -O1
// Takes level 15 for 14. Few weights have it.
#define KBH_MUTANT highest_level_clamped
#include "wrong.hpp"
