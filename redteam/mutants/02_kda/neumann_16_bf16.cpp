// kbh: -O1
// (I - L)(I + L^2)... of 16 x 16 blocks in bf16: too few digits when keys agree.
#define KBH_MUTANT neumann_16_bf16
#include "wrong.hpp"
