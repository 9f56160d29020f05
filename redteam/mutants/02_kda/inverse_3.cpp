// kbh: -O1
// (I + L)^-1 as a series that ends at L^3: right to 1e-3 while keys are nearly orthogonal.
#define KBH_MUTANT inverse_3
#include "wrong.hpp"
