// kbh: -O1
// hidden is clipped to a range found in its first 64 KiB, as a quantised kernel would calibrate itself.
#define KBH_MUTANT prefix_range
#include "wrong.hpp"
