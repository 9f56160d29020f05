// kbh: -O1
// a row's expert is searched among the beginnings, where an empty expert has the same one: right without empty experts.
#define KBH_MUTANT first_owner_search
#include "wrong.hpp"
