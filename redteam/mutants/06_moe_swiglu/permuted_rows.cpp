// kbh: -O1
// right rows, each one place too early: sums and histograms over the output agree.
#define KBH_MUTANT permuted_rows
#include "wrong.hpp"
