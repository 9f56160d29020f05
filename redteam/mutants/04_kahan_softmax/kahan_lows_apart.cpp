// kbh: -O1
// High and low parts are merged in trees of their own: what the high parts' additions lose goes nowhere.
#define KBH_MUTANT kahan_lows_apart
#include "wrong.hpp"
