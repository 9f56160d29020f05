// kbh: -O1
// exp(G_i) times exp(-G_j) with -G_j limited to 80: no NaN under strong decay, and no right answer either.
#define KBH_MUTANT clamped_exp
#include "wrong.hpp"
