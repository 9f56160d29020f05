// kbh: -O1
// the sigmoid is its tangent 1/2 + g/4: within rounding for nominal data, whose gates stay below 0.2.
#define KBH_MUTANT linear_sigmoid
#include "wrong.hpp"
