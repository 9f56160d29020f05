#pragma once

#include <filesystem>
#include <string>

#include "base/files.hpp"

namespace kbh {

/// A folder that another uid can read, with one of our programs, its private libraries and what else it needs: their
/// own homes may be closed to the sandbox's user.
class Staging {
 public:
  /// `program` lies beside kbh ("kbh-worker").
  explicit Staging(const std::string& program);

  /// Copies a file there; folders of `name` are made.
  void add(const std::filesystem::path& from, const std::filesystem::path& name) const;
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempDir folder_{"kbh-worker"};
};

}  // namespace kbh
