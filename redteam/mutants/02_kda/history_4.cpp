// kbh: -O1
// Segments of three chunks in parallel, each warmed up over the three before. Nominal decay hides the rest (1e-4).
#define KBH_MUTANT history_4
#include "wrong.hpp"
