// kbh: -O1
// Decays are those of the first layer instead of those given: right where nominal data are all there is.
#define KBH_MUTANT decay_from_index
#include "wrong.hpp"
