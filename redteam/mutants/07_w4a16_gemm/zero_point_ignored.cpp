// kbh: -O1
// Levels times scales: the zero point is forgotten. Right for weights without one.
#define KBH_MUTANT zero_point_ignored
#include "wrong.hpp"
