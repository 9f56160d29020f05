#include "problem/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "problem/problem_list.hpp"

namespace kbh {
namespace {

/// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// The number that an id starts with ("05_topk": 5), or that a whole name is ("5", "05").
std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || (end != text.data() + text.size() && *end != '_')) return std::nullopt;
  return number;
}

bool is_number(std::string_view text) { return text.find('_') == std::string_view::npos && leading_number(text); }

bool answers_to(const Problem& problem, std::string_view name) {
  if (name == problem.id) return true;
  if (std::find(problem.aliases.begin(), problem.aliases.end(), name) != problem.aliases.end()) return true;
  return is_number(name) && leading_number(name) == leading_number(problem.id);
}

}  // namespace

const std::vector<Problem>& all_problems() {
  static const std::vector<Problem> problems = make_problems();
  return problems;
}

const Problem& find_problem(std::string_view name) {
  std::vector<std::string> ids;
  std::vector<std::string> names;
  for (const Problem& problem : all_problems()) {
    if (answers_to(problem, name)) return problem;
    ids.push_back(problem.id);
    names.push_back(problem.id);
    names.insert(names.end(), problem.aliases.begin(), problem.aliases.end());
  }
  const std::string near = nearest_name(name, names);
  if (!near.empty()) fail(ErrorKind::usage, "unknown problem \"{}\": did you mean {}?", name, near);
  fail(ErrorKind::usage, "unknown problem \"{}\": expected one of {} (`kbh problems` lists them)", name,
       fmt::join(ids, ", "));
}

std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names) {
  std::string best;
  // Near: fewer than half of the letters differ, or one name starts with the other ("topk_bit" for "topk_bitonic").
  std::size_t least = std::max<std::size_t>(2, (wanted.size() + 1) / 2);
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(wanted, name);
    if (distance >= least) continue;
    least = distance;
    best = name;
  }
  return best;
}

}  // namespace kbh
