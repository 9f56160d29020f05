// kbh: -O1
// Writes x. It is data of the right kind and fresh with every call.
#define KBH_MUTANT copy_input
#include "wrong.hpp"
