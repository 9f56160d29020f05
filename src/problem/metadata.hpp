// problem.toml: what a problem says about itself in words and names. Its data, oracle and cases are code.
#pragma once

#include <string>
#include <string_view>

#include "problem/problem.hpp"

namespace kbh {

/// A Problem whose text fields are those of the document and whose functions are empty. Error(usage) names `source`,
/// the field, its value and what was expected; unknown fields are refused.
Problem read_metadata(std::string_view toml, const std::string& source);

/// The same from src/problems/ID as it was built in, with the folder's other texts.
Problem read_problem(std::string_view id);

}  // namespace kbh
