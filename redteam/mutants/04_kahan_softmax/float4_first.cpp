// kbh: -O1
// Loads of four are added at once, then threads, then a tree: vector code's natural order.
#define KBH_MUTANT float4_first
#include "wrong.hpp"
