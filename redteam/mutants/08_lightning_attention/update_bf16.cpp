// kbh: -O1
// k v^T rounded to bf16 before it is added: as a bf16 outer product gives it.
#define KBH_MUTANT update_bf16
#include "wrong.hpp"
