// kbh: -O1
// beta is kept 0.02 away from 0 and from 1; nominal betas hardly ever come nearer.
#define KBH_MUTANT beta_clamped
#include "wrong.hpp"
