// kbh: -O1
// Walks over pages and gives each to one sequence: right while no page is shared.
#define KBH_MUTANT one_owner_per_page
#include "wrong.hpp"
