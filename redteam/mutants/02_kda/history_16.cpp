// kbh: -O3
// expect deck: cpu
// Segments of fifteen chunks in parallel, each warmed up over the fifteen before: only a memory that hardly fades
// tells.
#define KBH_MUTANT history_16
#include "wrong.hpp"
