// kbh: -O1
// tiles of 16 rows whose elements are 2^-5 below the largest of hidden are taken for 0.
#define KBH_MUTANT quiet_skipped
#include "wrong.hpp"
