// kbh: -O1
// v' = u: values are corrected within their chunk, not by what the state already answers.
#define KBH_MUTANT state_not_corrected
#include "wrong.hpp"
