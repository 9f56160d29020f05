// kbh: -O1
// Keeps the weights of the first call. Right as long as nobody brings others of the same size.
#define KBH_MUTANT kept_weights
#include "wrong.hpp"
