#include "sandbox/bubblewrap.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/files.hpp"

namespace kbh::sandbox::bubblewrap {
namespace {

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// Links such as /lib -> usr/lib are rebuilt, so that /usr appears once.
void show_system(std::vector<std::string>& options) {
  for (const fs::path& path : system_paths()) {
    std::error_code ignored;
    if (path.parent_path() == "/" && fs::is_symlink(path, ignored))
      options.insert(options.end(), {"--symlink", fs::read_symlink(path).string(), path.string()});
    else
      options.insert(options.end(), {"--ro-bind-try", path.string(), path.string()});
  }
}

void show_binds(std::vector<std::string>& options, const Spec& spec, const std::vector<fs::path>& sources) {
  auto source = sources.begin();
  for (const Bind& bind : spec.read_only)
    options.insert(options.end(), {"--ro-bind", *source++, seen_at(bind, Level::full)});
  for (const Bind& bind : spec.writable)
    options.insert(options.end(), {"--bind", *source++, seen_at(bind, Level::full)});
}

void set_environment(std::vector<std::string>& options, const Spec& spec) {
  for (const std::string& variable : spec.environment) {
    const auto equals = variable.find('=');
    if (equals == std::string::npos) continue;
    options.insert(options.end(), {"--setenv", variable.substr(0, equals), variable.substr(equals + 1)});
  }
}

}  // namespace

fs::path find() {
  if (const char* chosen = std::getenv("KBH_BWRAP")) return is_program(chosen) ? fs::absolute(chosen) : fs::path();
  const fs::path here = executable_path().parent_path();
  for (const fs::path& path : {here / "bwrap", here / "libexec/bwrap"})
    if (is_program(path)) return path;
  const char* search = std::getenv("PATH");
  std::istringstream folders(search ? search : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && is_program(fs::path(folder) / "bwrap")) return fs::absolute(fs::path(folder) / "bwrap");
  return {};
}

std::vector<fs::path> system_paths() {
  return {"/usr",
          "/bin",
          "/sbin",
          "/lib",
          "/lib32",
          "/lib64",
          "/libx32",
          "/etc/ld.so.cache",
          "/etc/alternatives",
          "/sys/devices/system/cpu",
          "/sys/devices/system/node"};
}

std::vector<std::string> options(const Spec& spec, const std::vector<fs::path>& sources,
                                 const Descriptors& descriptors) {
  // --size 0 would mean without limit.
  const std::int64_t scratch = std::max<std::int64_t>(spec.limits.scratch_bytes, 4096);
  std::vector<std::string> options = {"--unshare-all",
                                      "--unshare-user",
                                      "--die-with-parent",
                                      "--new-session",
                                      "--uid",
                                      "65534",
                                      "--gid",
                                      "65534",
                                      "--cap-drop",
                                      "ALL",
                                      "--hostname",
                                      "kbh",
                                      "--proc",
                                      "/proc",
                                      "--dev",
                                      "/dev",
                                      "--size",
                                      std::to_string(scratch),
                                      "--tmpfs",
                                      "/tmp"};
  show_system(options);
  show_binds(options, spec, sources);
  for (const fs::path& device : spec.devices) options.insert(options.end(), {"--dev-bind-try", device, device});
  // Both are file systems in memory that nothing else limits (/dev/shm belongs to /dev).
  options.insert(options.end(), {"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", spec.directory});
  set_environment(options, spec);
  options.insert(options.end(),
                 {"--seccomp", std::to_string(descriptors.seccomp), "--info-fd", std::to_string(descriptors.info)});
  return options;
}

}  // namespace kbh::sandbox::bubblewrap
