#pragma once

#include "cli/grade.hpp"

namespace kbh::cli {

/// Compiles and times one shape whenever the watched file is saved, until interrupted. Nothing is recorded; it is no
/// grade.
int watch(const GradeArguments& arguments);

}  // namespace kbh::cli
