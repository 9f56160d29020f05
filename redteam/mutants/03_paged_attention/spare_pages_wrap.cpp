// kbh: -O1
// Takes page numbers modulo the number of table entries: right while the spare pages at the end are not used.
#define KBH_MUTANT spare_pages_wrap
#include "wrong.hpp"
