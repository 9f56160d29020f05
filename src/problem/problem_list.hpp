// The folders below src/problems as the build found them: cmake/problems.cmake writes the definitions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace kbh {

/// The texts of one folder, as they stood when this was built; empty where the folder has no such file.
struct ProblemFolder {
  std::string_view toml;              // problem.toml
  std::string_view prompt;            // prompt.md
  std::string_view reference_python;  // reference.py
  std::string_view reference_cpp;     // reference.hpp
};
ProblemFolder problem_folder(std::string_view id);

/// Calls make_ID() of every problem that is built in, in the order of their ids. Each folder defines one, in namespace
/// kbh: `Problem make_05_topk();`
std::vector<Problem> make_problems();

/// Ids of all problems, those included that this build leaves out (KBH_PROBLEMS).
const std::vector<std::string>& problem_ids();

}  // namespace kbh
