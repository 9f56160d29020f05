// kbh: -O1
// Each row's answer stands in another row. Every list by itself is sorted and plausible.
#define KBH_MUTANT permuted_rows
#include "wrong.hpp"
