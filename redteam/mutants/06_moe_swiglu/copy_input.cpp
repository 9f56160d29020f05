// kbh: -O1
// out is the beginning of hidden: finite, random-looking numbers of about the right kind.
#define KBH_MUTANT copy_input
#include "wrong.hpp"
