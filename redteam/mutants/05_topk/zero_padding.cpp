// kbh: -O1
// Lists start with 0. Right while the k-th value is positive, as on normal data.
#define KBH_MUTANT zero_padding
#include "wrong.hpp"
