// kbh: -O1
// Activations are limited to +-8. No normal number is larger.
#define KBH_MUTANT activations_clamped
#include "wrong.hpp"
