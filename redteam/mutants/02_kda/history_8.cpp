// kbh: -O3
// expect deck: cpu
// Segments of seven chunks in parallel, each warmed up over the seven before. Nominal decay hides the rest entirely.
#define KBH_MUTANT history_8
#include "wrong.hpp"
