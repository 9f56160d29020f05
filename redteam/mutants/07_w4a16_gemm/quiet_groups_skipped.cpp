// kbh: -O1
// Groups with scales below 1/16 of the largest of all are taken for 0. Right while all have one amplitude.
#define KBH_MUTANT quiet_groups_skipped
#include "wrong.hpp"
