// kbh: -O1
// Indices count from the start of the tensor. Right in row 0, and wherever there is one row.
#define KBH_MUTANT flat_index
#include "wrong.hpp"
