// Released versions never change: a checked-in list of fingerprints, and what contradicts it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kbh {

/// One line of decks/released.lock.
struct Released {
  enum class Kind { deck, problem };
  Kind kind = Kind::deck;
  std::string name;
  int version = 1;
  std::string sha256;

  bool operator==(const Released&) const = default;
};

/// decks/released.lock: [[deck]] and [[problem]] tables, in the order of the file. Error(usage) names file, field,
/// value and what was expected, and a version that stands there twice.
std::vector<Released> read_released(const std::filesystem::path& file);

/// Fingerprint of a problem's folder: names and contents of all its files but mutants.cpp. (More wrong kernels prove
/// more and change no result.)
std::string problem_sha256(const std::filesystem::path& folder);

/// What a released version must not be, one line each; empty when all is well. `root` holds decks/ and src/problems/.
///   * A listed deck or problem has another content at the same version, an older version, or is gone.
///   * A deck whose every shape has its t_base, or a problem on such a deck, is not listed.
/// Without src/problems (an unpacked archive) only decks are looked at.
std::vector<std::string> release_faults(const std::filesystem::path& root);

}  // namespace kbh
