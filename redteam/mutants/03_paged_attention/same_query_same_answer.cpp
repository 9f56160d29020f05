// kbh: -O1
// Keeps its answer while the queries are the same: the cache, table or lengths may have changed in place.
#define KBH_MUTANT same_query_same_answer
#include "wrong.hpp"
