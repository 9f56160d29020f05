#pragma once

#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace kbh {

/// All problems, in the order of their ids. Built once, on first use.
const std::vector<Problem>& all_problems();

/// By id, alias (public folder name) or two-digit number. Error(usage) with the nearest name when there is none.
const Problem& find_problem(std::string_view name);

/// The nearest of `names` to `wanted` by edit distance; empty when none is near.
std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace kbh
