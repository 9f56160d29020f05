// Files: reading with clear errors, writing so that a crash at any point leaves the old or the new content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"

namespace kbh {

namespace fs = std::filesystem;

/// Whole content. Error(usage) with path and reason when it cannot be read.
std::string read_text(const fs::path& path);

/// Write to a temporary name in the same folder, fsync, rename, fsync the folder. Error(internal) names path and
/// reason.
void write_atomic(const fs::path& path, std::string_view content);

/// Append one line and fsync. Used for logs that must survive a kill.
void append_line(const fs::path& path, std::string_view line);

/// Regular files below `root` (relative paths, sorted). Symbolic links are not followed and not listed.
std::vector<fs::path> list_files(const fs::path& root);

/// Where this executable lies.
fs::path executable_path();

/// The folder that holds decks/, include/ and kernels/: $KBH_ROOT, or the nearest folder at or above the executable
/// (build tree, unpacked archive). Error(machine) when there is none.
fs::path resource_root();

/// $KBH_CACHE, else $XDG_CACHE_HOME/kbh, else ~/.cache/kbh, else /tmp/kbh-cache-UID. Created on demand, mode 0700.
fs::path cache_dir();

/// Removes temporary folders that processes of ours left behind when they were killed. Returns how many.
int clean_temporary_folders();

/// A private folder below the system's temporary folder, removed with everything in it at the end. Its name tells the
/// process that made it, so that clean_temporary_folders() can find those of the dead.
class TempDir {
 public:
  explicit TempDir(std::string_view prefix = "kbh");
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace kbh
