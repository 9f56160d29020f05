#include "deck/deck.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/files.hpp"
#include "problem/registry.hpp"

namespace kbh {

const std::vector<DeckShape>& Deck::shapes_of(const Problem& problem) const {
  const auto found = shapes.find(problem.id);
  if (found != shapes.end()) return found->second;
  std::vector<std::string> ids;
  for (const auto& [id, list] : shapes) ids.push_back(id);
  fail(ErrorKind::usage, "deck {} has no shapes for problem {}: it has {}", name, problem.id, fmt::join(ids, ", "));
}

bool Deck::released() const {
  const auto measured = [](const DeckShape& shape) { return shape.t_base_us > 0; };
  return !shapes.empty() && std::all_of(shapes.begin(), shapes.end(), [&](const auto& problem) {
    return std::all_of(problem.second.begin(), problem.second.end(), measured);
  });
}

std::vector<std::string> deck_names() {
  std::vector<std::string> names;
  for (const fs::path& file : list_files(resource_root() / "decks"))
    if (file.extension() == ".toml" && !file.has_parent_path()) names.push_back(file.stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Deck find_deck(std::string_view name) {
  const std::vector<std::string> names = deck_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return read_deck(resource_root() / "decks" / fmt::format("{}.toml", name));
  const std::string near = nearest_name(name, names);
  if (!near.empty()) fail(ErrorKind::usage, "unknown deck \"{}\": did you mean {}?", name, near);
  fail(ErrorKind::usage, "unknown deck \"{}\": expected one of {}", name, fmt::join(names, ", "));
}

}  // namespace kbh
