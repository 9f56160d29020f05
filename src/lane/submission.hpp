// A submission as it was handed in: its files, its lane, its hash. Nothing of it has run yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbh {

enum class Lane { sealed, host, python };
std::string_view name_of(Lane lane);
std::optional<Lane> lane_from(std::string_view name);

/// What a submission may hold.
inline constexpr std::size_t kMaxSubmissionBytes = 8 << 20;
inline constexpr std::size_t kMaxSubmissionFiles = 256;

struct SourceFile {
  std::filesystem::path path;  // relative
  std::string content;
};

struct Submission {
  std::filesystem::path origin;  // file or folder as given
  Lane lane = Lane::host;
  std::vector<SourceFile> files;
  std::size_t main_file = 0;       // index of submission.cpp
  std::vector<std::string> flags;  // extra compiler flags of its first comment line, already checked
  std::string sha256;              // over all paths and contents

  [[nodiscard]] const SourceFile& main() const { return files[main_file]; }
};

/// Reads a folder, or a file with the headers that it includes with quotes from its own folder (headers.hpp).
/// Error(usage) when it is missing, empty, too large, holds links or special files, has no
/// submission file, or asks for a flag that is not allowed. `lane` overrides what the file name says.
Submission read_submission(const std::filesystem::path& path, std::optional<Lane> lane);

/// The flags of a leading `// kbh: -funroll-loops -fopenmp` line. Error(usage) names the first that is not allowed.
std::vector<std::string> flags_of(std::string_view source, const std::string& name);

}  // namespace kbh
