#include "deck/release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "deck/deck.hpp"
#include "deck/section.hpp"
#include "problem/metadata.hpp"

namespace kbh {
namespace {

using Kind = Released::Kind;

std::string_view name_of(Kind kind) { return kind == Kind::deck ? "deck" : "problem"; }

toml::table parse(const fs::path& file) {
  try {
    return toml::parse(read_text(file), file.string());
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::usage, "{}:{}: not TOML: {}", file.string(), error.source().begin.line, error.description());
  }
}

std::string hash_from(const Section& section) {
  std::string hash = section.text("sha256");
  const bool digits =
      std::all_of(hash.begin(), hash.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (hash.size() != 64 || !digits) section.refuse("sha256", "64 hexadecimal digits");
  return hash;
}

/// What stands there now.
struct Present {
  int version = 1;
  std::string sha256;
  bool released = false;
};

using Everything = std::map<std::pair<Kind, std::string>, Present>;

Everything everything_below(const fs::path& root) {
  Everything present;
  std::set<std::string> on_released_decks;
  for (const fs::path& file : list_files(root / "decks")) {
    if (file.extension() != ".toml" || file.has_parent_path()) continue;
    const Deck deck = read_deck(root / "decks" / file);
    present[{Kind::deck, deck.name}] = {deck.version, deck.sha256, deck.released()};
    if (!deck.released()) continue;
    for (const auto& [id, shapes] : deck.shapes) on_released_decks.insert(id);
  }
  if (!fs::exists(root / "src/problems")) return present;
  for (const auto& entry : fs::directory_iterator(root / "src/problems")) {
    const fs::path toml = entry.path() / "problem.toml";
    if (!fs::exists(toml)) continue;
    const std::string id = entry.path().filename().string();
    present[{Kind::problem, id}] = {read_metadata(read_text(toml), toml.string()).version, problem_sha256(entry.path()),
                                    on_released_decks.contains(id)};
  }
  return present;
}

std::string entry_text(Kind kind, const std::string& name, const Present& now) {
  return fmt::format("[[{}]] name = \"{}\", version = {}, sha256 = \"{}\"", name_of(kind), name, now.version,
                     now.sha256);
}

std::optional<std::string> fault_of(const Released& listed, const Everything& present) {
  const auto found = present.find({listed.kind, listed.name});
  const std::string what = fmt::format("{} {} version {}", name_of(listed.kind), listed.name, listed.version);
  if (found == present.end()) return fmt::format("{} was released and is gone", what);
  const Present& now = found->second;
  if (now.version < listed.version) return fmt::format("{} was released; it says version {} now", what, now.version);
  if (now.version == listed.version && now.sha256 != listed.sha256)
    return fmt::format(
        "{} was released and has changed (sha256 {}, released {}): undo the change, or give it a new version", what,
        now.sha256, listed.sha256);
  return std::nullopt;
}

}  // namespace

std::vector<Released> read_released(const fs::path& file) {
  const toml::table table = parse(file);
  const Section top(table, "", file.string(), {"deck", "problem"});
  std::vector<Released> all;
  for (const Kind kind : {Kind::deck, Kind::problem}) {
    if (!top.has(name_of(kind))) continue;
    for (const Section& section : top.sections(name_of(kind), {"name", "version", "sha256"})) {
      Released one{kind, section.text("name"), static_cast<int>(section.integer("version", 1, 1'000'000)),
                   hash_from(section)};
      const auto same = [&](const Released& other) {
        return other.kind == kind && other.name == one.name && other.version == one.version;
      };
      if (std::any_of(all.begin(), all.end(), same))
        section.refuse(fmt::format("{} version {} stands there twice: remove one", one.name, one.version));
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::string problem_sha256(const fs::path& folder) {
  std::string all;
  for (const fs::path& file : list_files(folder)) {
    if (file == "mutants.cpp") continue;
    const std::string content = read_text(folder / file);
    all += fmt::format("{}:{}:{}:", file.string().size(), file.string(), content.size()) + content;
  }
  return sha256_hex(all);
}

std::vector<std::string> release_faults(const fs::path& root) {
  const std::vector<Released> listed = read_released(root / "decks/released.lock");
  const bool problems = fs::exists(root / "src/problems");
  const Everything present = everything_below(root);
  std::vector<std::string> faults;
  for (const Released& one : listed) {
    if (one.kind == Kind::problem && !problems) continue;
    if (auto fault = fault_of(one, present)) faults.push_back(std::move(*fault));
  }
  for (const auto& [key, now] : present) {
    const auto& [kind, name] = key;
    const auto lists_it = [&, kind = kind, name = name](const Released& one) {
      return one.kind == kind && one.name == name && one.version == now.version;
    };
    if (now.released && std::none_of(listed.begin(), listed.end(), lists_it))
      faults.push_back(fmt::format(
          "{} {} is released (every shape of {} has its t_base) and not listed: add to decks/released.lock: {}",
          name_of(kind), name, kind == Kind::deck ? "it" : "a deck with it", entry_text(kind, name, now)));
  }
  return faults;
}

}  // namespace kbh
