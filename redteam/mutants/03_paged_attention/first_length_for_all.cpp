// kbh: -O1
// Takes the first sequence's length for all: right while all are full.
#define KBH_MUTANT first_length_for_all
#include "wrong.hpp"
