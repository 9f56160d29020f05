#include "lane/headers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh {
namespace {

void skip_blanks(std::string_view& text) { text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size())); }

bool skip_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  skip_blanks(text);
  return true;
}

std::optional<std::string> quoted_include(std::string_view line) {
  skip_blanks(line);
  if (!skip_word(line, "#") || !skip_word(line, "include") || !line.starts_with('"')) return std::nullopt;
  const std::size_t end = line.find('"', 1);
  if (end == std::string_view::npos || end == 1) return std::nullopt;
  return std::string(line.substr(1, end - 1));
}

/// A name that may lie inside the folder: relative, never above it, without bytes that end or forge a path.
std::optional<fs::path> inside(const fs::path& beside, const std::string& name) {
  const auto odd = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), odd) || fs::path(name).is_absolute()) return std::nullopt;
  // Also while it is being resolved: "sub/../../x/y" leaves the folder and comes back.
  int depth = 0;
  for (const fs::path& part : beside / name) {
    if (part == "..")
      --depth;
    else if (part != "." && !part.empty())
      ++depth;
    if (depth < 0) return std::nullopt;
  }
  return (beside / name).lexically_normal();
}

/// True for a plain file that is reached without following a link.
bool is_plain_file(const fs::path& folder, const fs::path& relative) {
  fs::path at = folder;
  fs::file_status status;
  for (const fs::path& part : relative) {
    at /= part;
    std::error_code ignored;  // a name that is too long, say, is that of no file
    status = fs::symlink_status(at, ignored);
    if (!fs::exists(status)) return false;
    if (!fs::is_directory(status) && !fs::is_regular_file(status))
      fail(ErrorKind::usage, "{}: not a plain file; links and special files do not travel in a submission",
           at.string());
  }
  return fs::is_regular_file(status);
}

class Collector {
 public:
  explicit Collector(const fs::path& folder) : folder_(folder) {}

  void follow(const fs::path& beside, std::string_view source) {
    for (const std::string& name : quoted_includes(source))
      for (const fs::path& from : {beside, fs::path()})
        if (const auto path = inside(from, name); path && is_plain_file(folder_, *path)) {
          add(*path);
          break;
        }
  }

  [[nodiscard]] std::vector<SourceFile> files() const {
    std::vector<SourceFile> files;
    for (const auto& [path, content] : files_) files.push_back({path, content});
    return files;
  }

 private:
  void add(const fs::path& path) {
    if (files_.contains(path)) return;
    total_ += fs::file_size(folder_ / path);
    if (total_ > kMaxSubmissionBytes || files_.size() + 1 == kMaxSubmissionFiles)
      fail(ErrorKind::usage, "{}: a submission holds at most {} files and {} MiB, with the headers that it includes",
           folder_.string(), kMaxSubmissionFiles, kMaxSubmissionBytes >> 20);
    const std::string& content = files_[path] = read_text(folder_ / path);
    follow(path.parent_path(), content);
  }

  const fs::path& folder_;
  std::map<fs::path, std::string> files_;
  std::size_t total_ = 0;
};

}  // namespace

std::vector<std::string> quoted_includes(std::string_view source) {
  std::vector<std::string> names;
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    if (auto name = quoted_include(source.substr(0, end))) names.push_back(std::move(*name));
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return names;
}

std::vector<SourceFile> included_headers(const fs::path& folder, std::string_view source) {
  Collector collector(folder);
  collector.follow({}, source);
  return collector.files();
}

}  // namespace kbh
