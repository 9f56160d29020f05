// kbh: -O1
// Divides scores by sqrt(128) for every head_dim: nominal scores are small either way.
#define KBH_MUTANT scale_of_128
#include "wrong.hpp"
