// runs/<id>/: one folder per grade, readable whenever the process dies.
//
//   grading.json      while the grade runs: pid, boot, start. Gone when it is over.
//   submission/       the files as graded
//   build.log worker.log
//   grade.json        the result, written last and at once (kbh.grade/1)
//   interrupted.json  instead of grade.json, when the process died: written by the next start
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace kbh {

class RunFolder {
 public:
  /// Makes `store`/<timestamp>_<name>, with a suffix on a clash (mkdir decides, so that two processes may write at
  /// once). Error(usage) when the store cannot be made, Error(internal) when it cannot be written.
  RunFolder(const std::filesystem::path& store, std::string_view name);
  /// A folder that ends without finish() keeps grading.json: the next start calls it interrupted.
  ~RunFolder() = default;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string id() const { return path_.filename().string(); }

  /// Writes one file below the folder, all or nothing.
  void save(const std::string& name, std::string_view content) const;
  /// Writes grade.json and takes grading.json away.
  void finish(const Json& grade) const;

 private:
  std::filesystem::path path_;
};

/// Marks folders whose process is gone as interrupted, and removes their temporary files. Returns their ids.
std::vector<std::string> clean_store(const std::filesystem::path& store);

}  // namespace kbh
