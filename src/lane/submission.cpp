#include "lane/submission.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "lane/headers.hpp"

namespace kbh {
namespace {

// Flags that change code generation only. Nothing that loads code into the compiler, writes elsewhere or names a file.
constexpr std::array kAllowedFlags = {
    std::string_view("-O1"),
    std::string_view("-O2"),
    std::string_view("-O3"),
    std::string_view("-Os"),
    std::string_view("-Ofast"),
    std::string_view("-ffast-math"),
    std::string_view("-fopenmp"),
    std::string_view("-fopenmp-simd"),
    std::string_view("-funroll-loops"),
    std::string_view("-fno-exceptions"),
    std::string_view("-fno-rtti"),
    std::string_view("-fno-math-errno"),
    std::string_view("-fno-trapping-math"),
    std::string_view("-fstrict-aliasing"),
    std::string_view("-fno-strict-aliasing"),
    std::string_view("-fno-tree-vectorize"),
    std::string_view("-std=c++17"),
    std::string_view("-std=c++20"),
    std::string_view("-std=c++23"),
    std::string_view("-mprefer-vector-width=128"),
    std::string_view("-mprefer-vector-width=256"),
    std::string_view("-mprefer-vector-width=512"),
};

bool allowed(std::string_view flag) {
  if (std::find(kAllowedFlags.begin(), kAllowedFlags.end(), flag) != kAllowedFlags.end()) return true;
  if (!flag.starts_with("-D") || flag.size() == 2) return false;
  return std::all_of(flag.begin() + 2, flag.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '='; });
}

Submission read_folder(const fs::path& folder) {
  Submission submission;
  std::size_t total = 0;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
    const fs::path relative = fs::relative(it->path(), folder);
    const fs::file_type type = it->symlink_status().type();
    if (type == fs::file_type::directory) continue;
    if (type != fs::file_type::regular)
      fail(ErrorKind::usage, "{}: not a plain file; links and special files do not travel in a submission",
           it->path().string());
    total += it->file_size();
    if (total > kMaxSubmissionBytes || submission.files.size() == kMaxSubmissionFiles)
      fail(ErrorKind::usage, "{}: a submission holds at most {} files and {} MiB; is this the right folder?",
           folder.string(), kMaxSubmissionFiles, kMaxSubmissionBytes >> 20);
    submission.files.push_back({relative, read_text(it->path())});
  }
  std::sort(submission.files.begin(), submission.files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return submission;
}

/// The lane that a file name stands for.
std::optional<Lane> lane_of(const fs::path& name) {
  if (name == "submission.cpp") return Lane::host;
  if (name == "solution.py") return Lane::python;
  if (name == "submission.cu") return Lane::sealed;
  return std::nullopt;
}

void find_main(Submission& submission, std::optional<Lane> wanted) {
  for (std::size_t i = 0; i < submission.files.size(); ++i) {
    const std::optional<Lane> lane = lane_of(submission.files[i].path);
    if (!lane || (wanted && *lane != *wanted)) continue;
    submission.main_file = i;
    submission.lane = *lane;
    return;
  }
  fail(ErrorKind::usage, "{}: no {} in this folder (`kbh new DIR --problem ID` writes a starter)",
       submission.origin.string(),
       wanted == Lane::host ? "submission.cpp" : "submission.cpp, submission.cu or solution.py");
}

/// A submission of one file; it gets the name that its lane expects, and its headers come along.
Submission read_file(const fs::path& path, std::optional<Lane> lane) {
  Submission submission;
  submission.origin = path;
  const std::string extension = path.extension().string();
  const std::optional<Lane> by_name = extension == ".cpp" || extension == ".cc" ? std::optional(Lane::host)
                                      : extension == ".py"                      ? std::optional(Lane::python)
                                      : extension == ".cu"                      ? std::optional(Lane::sealed)
                                                                                : std::nullopt;
  if (!by_name && !lane)
    fail(ErrorKind::usage, "{}: a submission is a .cpp, .cu or .py file, or a folder that holds one", path.string());
  submission.lane = lane.value_or(by_name.value_or(Lane::host));
  if (!fs::is_regular_file(path)) fail(ErrorKind::usage, "{}: not a regular file", path.string());
  if (fs::file_size(path) > kMaxSubmissionBytes)
    fail(ErrorKind::usage, "{}: {} bytes; a submission holds at most {} MiB", path.string(), fs::file_size(path),
         kMaxSubmissionBytes >> 20);
  const char* name = submission.lane == Lane::python   ? "solution.py"
                     : submission.lane == Lane::sealed ? "submission.cu"
                                                       : "submission.cpp";
  const std::string source = read_text(path);
  // Python modules beside a solution stay where they are: its folder is a submission, too.
  if (submission.lane != Lane::python) submission.files = included_headers(fs::absolute(path).parent_path(), source);
  const auto taken = [&](const SourceFile& file) { return file.path == name; };
  if (std::any_of(submission.files.begin(), submission.files.end(), taken))
    fail(ErrorKind::usage, "{}: includes {}, the name under which it is compiled itself: hand in the folder",
         path.string(), name);
  submission.files.insert(submission.files.begin(), {name, source});
  return submission;
}

std::string hash_of(const std::vector<SourceFile>& files) {
  std::string all;
  for (const SourceFile& file : files)
    all += fmt::format("{}:{}:{}:", file.path.string().size(), file.path.string(), file.content.size()) + file.content;
  return sha256_hex(all);
}

}  // namespace

std::string_view name_of(Lane lane) {
  switch (lane) {
    case Lane::sealed:
      return "sealed";
    case Lane::host:
      return "host";
    case Lane::python:
      return "python";
  }
  return "?";
}

std::optional<Lane> lane_from(std::string_view name) {
  for (const Lane lane : {Lane::sealed, Lane::host, Lane::python})
    if (name == name_of(lane)) return lane;
  return std::nullopt;
}

std::vector<std::string> flags_of(std::string_view source, const std::string& name) {
  constexpr std::string_view kMarker = "// kbh:";
  if (!source.starts_with(kMarker)) return {};
  std::istringstream words{std::string(source.substr(kMarker.size(), source.find('\n') - kMarker.size()))};
  std::vector<std::string> flags;
  for (std::string flag; words >> flag;) {
    if (!allowed(flag))
      fail(ErrorKind::usage,
           "{}:1: compiler flag {} is not allowed; allowed: -O1..-O3, -Ofast, -ffast-math, -fopenmp, "
           "-funroll-loops, -std=, -mprefer-vector-width=, -DNAME=VALUE and a few -fno-... (docs/formats.md)",
           name, flag);
    flags.push_back(flag);
  }
  return flags;
}

Submission read_submission(const fs::path& path, std::optional<Lane> lane) {
  if (!fs::exists(path))
    fail(ErrorKind::usage, "{}: no such file or folder; expected a folder with submission.cpp, or that file",
         path.string());
  Submission submission;
  if (fs::is_directory(path)) {
    submission = read_folder(path);
    submission.origin = path;
    find_main(submission, lane);
  } else {
    submission = read_file(path, lane);
  }
  submission.flags = flags_of(submission.main().content, submission.main().path.string());
  submission.sha256 = hash_of(submission.files);
  return submission;
}

}  // namespace kbh
