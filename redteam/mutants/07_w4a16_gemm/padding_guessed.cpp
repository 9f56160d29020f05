// kbh: -O1
// A row of x that begins with a group of zeros is taken for padding. No normal row does.
#define KBH_MUTANT padding_guessed
#include "wrong.hpp"
