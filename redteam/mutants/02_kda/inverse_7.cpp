// kbh: -O1
// (I + L)^-1 as a series that ends at L^7: right while keys are nearly orthogonal.
#define KBH_MUTANT inverse_7
#include "wrong.hpp"
