#include "base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/error.hpp"

namespace kbh {
namespace {

void write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(fmt::format("cannot write {}", path.string()));
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

void fsync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());  // some file systems refuse; the rename itself already happened
}

/// "-NAMESPACE-PID": which process a temporary folder belongs to. A number alone could be that of a living process in
/// another container with the same /tmp. Zero leaves the number out.
std::string process_mark(pid_t pid) {
  struct stat info {};
  ::stat("/proc/self/ns/pid", &info);
  return fmt::format("-{}-{}", info.st_ino, pid == 0 ? "" : std::to_string(pid));
}

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

std::string read_text(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) fail(ErrorKind::usage, "cannot read {}: {}", path.string(), std::strerror(errno));
  std::string content;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::usage, "cannot read {}: {}", path.string(), std::strerror(errno));
    if (n == 0) return content;
    content.append(chunk, static_cast<std::size_t>(n));
  }
}

void write_atomic(const fs::path& path, std::string_view content) {
  std::string temporary = path.string() + ".tmp-XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) fail_errno(fmt::format("cannot create a file beside {}", path.string()));
  try {
    write_all(fd.get(), content, path);
    ::fchmod(fd.get(), 0644);
    if (::fsync(fd.get()) != 0) fail_errno(fmt::format("cannot sync {}", path.string()));
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_errno(fmt::format("cannot rename to {}", path.string()));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  fsync_folder(parent_of(path));
}

void append_line(const fs::path& path, std::string_view line) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) fail_errno(fmt::format("cannot open {}", path.string()));
  std::string with_newline(line);
  with_newline += '\n';
  write_all(fd.get(), with_newline, path);
  if (::fsync(fd.get()) != 0) fail_errno(fmt::format("cannot sync {}", path.string()));
}

std::vector<fs::path> list_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it)
    if (it->symlink_status().type() == fs::file_type::regular) files.push_back(fs::relative(it->path(), root));
  std::sort(files.begin(), files.end());
  return files;
}

fs::path executable_path() { return fs::read_symlink("/proc/self/exe"); }

fs::path resource_root() {
  const auto is_root = [](const fs::path& p) {
    return fs::exists(p / "decks" / "cpu.toml") && fs::exists(p / "include" / "kbh");
  };
  if (const char* given = std::getenv("KBH_ROOT")) {
    if (is_root(given)) return fs::canonical(given);
    fail(ErrorKind::machine, "KBH_ROOT={}: no decks/cpu.toml and include/kbh there", given);
  }
  for (fs::path p = executable_path().parent_path();; p = p.parent_path()) {
    if (is_root(p)) return p;
    if (p == p.parent_path()) break;
  }
  fail(ErrorKind::machine, "cannot find decks/ and include/ beside {}: set KBH_ROOT to the folder that holds them",
       executable_path().string());
}

fs::path cache_dir() {
  fs::path dir;
  if (const char* given = std::getenv("KBH_CACHE"); given && *given) {
    dir = given;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    dir = fs::path(xdg) / "kbh";
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    dir = fs::path(home) / ".cache" / "kbh";
  } else {
    dir = fmt::format("/tmp/kbh-cache-{}", ::getuid());
  }
  std::error_code error;
  fs::create_directories(dir, error);
  if (error)
    fail(ErrorKind::machine, "cannot create the cache folder {}: {} (set KBH_CACHE)", dir.string(), error.message());
  // Compiled submissions are trusted from here: nobody else may write into it.
  struct stat info {};
  if (::stat(dir.c_str(), &info) != 0 || info.st_uid != ::geteuid())
    fail(ErrorKind::machine, "the cache folder {} belongs to another user: set KBH_CACHE", dir.string());
  ::chmod(dir.c_str(), 0700);
  return dir;
}

int clean_temporary_folders() {
  int removed = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path(), error)) {
    const std::string name = entry.path().filename().string();
    const std::size_t mark = name.find(process_mark(0));
    struct stat info {};
    if (!name.starts_with("kbh-") || mark == std::string::npos) continue;
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str() + mark + process_mark(0).size(), nullptr, 10));
    if (pid <= 0 || fs::exists(fmt::format("/proc/{}", pid))) continue;
    removed += fs::remove_all(entry.path(), error) > 0 ? 1 : 0;
  }
  return removed;
}

TempDir::TempDir(std::string_view prefix) {
  const std::string unique = fmt::format("{}{}-XXXXXX", prefix, process_mark(::getpid()));
  std::string name = (fs::temp_directory_path() / unique).string();
  if (!::mkdtemp(name.data())) fail_errno(fmt::format("cannot create a temporary folder {}", name));
  path_ = name;
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir::~TempDir() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace kbh
