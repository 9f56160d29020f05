// kbh: -O1
// (I - L)(I + L^2)(I + L^4)... over a whole chunk in tf32. Exact on paper; powers of L explode when keys agree.
#define KBH_MUTANT neumann_64
#include "wrong.hpp"
