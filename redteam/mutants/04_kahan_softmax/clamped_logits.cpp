// kbh: -O1
// Logits clamped to +-60 need no maximum: right for nominal logits, and -inf becomes a small number.
#define KBH_MUTANT clamped_logits
#include "wrong.hpp"
