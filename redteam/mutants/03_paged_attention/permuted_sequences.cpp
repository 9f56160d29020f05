// kbh: -O1
// Each answer stands one sequence too early: every number of it is somewhere in the right answer.
#define KBH_MUTANT permuted_sequences
#include "wrong.hpp"
