// Labels for human eyes: things in a source or an object that deserve a look. They never decide a verdict.
#pragma once

#include <string>
#include <vector>

#include "inspect/elf.hpp"
#include "lane/submission.hpp"

namespace kbh {

struct Label {
  std::string kind;   // "reads a clock", "starts a process", ...
  std::string where;  // "submission.cpp:12" or "import clock_gettime"
};

std::vector<Label> labels_of(const Submission& submission, const ElfCensus& census);

}  // namespace kbh
