// kbh: -O1
// One gate for all channels of a head, as in the gated delta rule that came before this one.
#define KBH_MUTANT head_gate
#include "wrong.hpp"
