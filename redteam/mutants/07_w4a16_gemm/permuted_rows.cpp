// kbh: -O1
// Each row of the answer is that of the next row of x. Statistics over the tensor are right.
#define KBH_MUTANT permuted_rows
#include "wrong.hpp"
