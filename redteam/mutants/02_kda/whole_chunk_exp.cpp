// kbh: -O1
// exp(G_i) times exp(-G_j) over a whole chunk: one matrix product, until exp(-G_j) overflows under strong decay.
#define KBH_MUTANT whole_chunk_exp
#include "wrong.hpp"
