#pragma once

#include <filesystem>
#include <string>

#include "base/files.hpp"

namespace kbh {

/// A folder that another uid can read, with one of our programs, its private libraries and one artifact: their own
/// homes may be closed to the sandbox's user.
class Staging {
 public:
  /// `program` lies beside kbh ("kbh-worker"); the artifact is copied as submission.so.
  Staging(const std::string& program, const std::filesystem::path& artifact);
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  void copy(const std::filesystem::path& from, const std::filesystem::path& name) const;
  TempDir folder_{"kbh-worker"};
};

}  // namespace kbh
