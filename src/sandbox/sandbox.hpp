// Running foreign code: what it may see, do and use up.
//
// full     bubblewrap: user, pid, ipc, uts, net, cgroup and mount namespaces; only the listed folders exist; another uid; seccomp.
// reduced  no namespaces (containers without user namespaces): Landlock on files, seccomp, limits, another uid when we are root.
// none     limits only. For debugging, with --no-sandbox; the record says so.
//
// Everything is prepared in the parent (seccomp program, Landlock ruleset, argument vectors); between fork and exec the
// child makes system calls only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"

namespace kbh::sandbox {

enum class Level { none, reduced, full };
std::string_view name_of(Level level);
std::optional<Level> level_from(std::string_view name);

/// What this machine offers, with the reason in words. Tried for real (a child is started), once per process.
struct Support {
  Level level = Level::none;
  std::string why;            // "bubblewrap 0.8.0 with user namespaces", "no user namespaces: ..."
  std::string missing;        // what would raise the level, with the command that installs it; empty at full
  std::string bubblewrap;     // path used, empty when none
  int landlock_abi = 0;       // 0: not available
};
const Support& support();

struct Limits {
  double cpu_seconds = 0;             // 0: none
  std::int64_t memory_bytes = 0;      // address space; 0: none
  std::int64_t file_bytes = 64 << 20; // largest file
  std::int64_t processes = 256;
  std::int64_t scratch_bytes = 64 << 20;  // size of the private /tmp (full); reduced has no writable folder but `writable`
};

/// Which system calls pass.
enum class Profile {
  compiler,  // may start programs
  worker,    // threads only: no exec, no fork, no sockets, no ptrace, no new namespaces, no memfd
};

struct Bind {
  std::filesystem::path host;
  std::filesystem::path inside;  // at level full; levels reduced and none use the host path
};

struct Spec {
  Level level = Level::full;
  Profile profile = Profile::worker;
  std::vector<std::string> argv;          // argv[0]: path as seen inside
  std::vector<std::string> environment;   // "NAME=value"; nothing is inherited
  std::vector<Bind> read_only;            // beside /usr, /lib*, /bin, /etc/{ld.so.cache,alternatives}
  std::vector<Bind> writable;
  std::string directory;                  // working directory as seen inside; default "/"
  std::vector<std::pair<int, int>> fds;   // (ours, number inside); all others are closed
  int output = -1;                        // stdout and stderr; -1: /dev/null
  Limits limits;
};

/// Where a bind ends up for a given level.
std::filesystem::path seen_at(const Bind& bind, Level level);

/// A started child. Destroying it kills the whole sandbox and reaps it.
class Child {
 public:
  Child() = default;
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}
  Child& operator=(Child&& other) noexcept;
  ~Child() { kill_and_reap(); }

  [[nodiscard]] pid_t pid() const { return pid_; }  // of the launcher; the program's own pid arrives with its first message
  /// Waits up to `seconds` (0: just looks). The raw wait status once ended.
  std::optional<int> wait(double seconds);
  void kill_and_reap();

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// Error(machine) when the level is not available here.
Child spawn(const Spec& spec);

struct RunResult {
  int exit_code = -1;    // valid when signal == 0 and not timed_out
  int signal = 0;
  bool timed_out = false;
  bool truncated = false;  // output went beyond the limit
  std::string output;
  double seconds = 0;
};

/// Starts, collects at most `output_limit` bytes of stdout and stderr together, waits at most `seconds`, kills what is left.
RunResult run(Spec spec, double seconds, std::size_t output_limit);

}  // namespace kbh::sandbox
