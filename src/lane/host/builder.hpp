#pragma once

#include <string>

#include "lane/compile.hpp"

namespace kbh::host {

/// Compiles submission.cpp to a shared object inside the sandbox. Error(machine) when there is no compiler.
BuildResult build(const Submission& submission, sandbox::Level level, const DeckLimits& limits);

/// The system's C++ compiler: $KBH_CXX, else g++ or clang++ of /usr/bin. Empty when there is none.
std::string find_compiler();

}  // namespace kbh::host
