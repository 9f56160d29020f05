// Running foreign code: what it may see, do and use up.
//
// full     bubblewrap: user, pid, ipc, uts, net, cgroup and mount namespaces; only the listed folders exist; another
// uid; seccomp. reduced  no namespaces (containers without user namespaces): Landlock on files, seccomp, limits,
// another uid when we are root. none     limits only. For debugging, with --no-sandbox; the record says so.
//
// Everything is prepared in the parent (seccomp program, Landlock ruleset, argument vectors); between fork and exec the
// child makes system calls only.
//
// Two filters. What `spawn` loads must still allow one exec: of the program itself. A program that then loads foreign
// code (kbh-worker) calls `restrict_self` first, which takes exec, and all that only its own start needed, away.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.hpp"

namespace kbh::sandbox {

enum class Level { none, reduced, full };
std::string_view name_of(Level level);
std::optional<Level> level_from(std::string_view name);

/// What this machine offers, with the reason in words. Tried for real (a child is started), once per process.
struct Support {
  Level level = Level::none;  // the highest that works
  std::string why;            // "bubblewrap 0.8.0 with user namespaces", "bubblewrap does not work here: ..."
  std::string missing;        // what would raise the level, with the command that does it; empty at full
  std::string bubblewrap;     // path used, empty when none
  int landlock_abi = 0;       // 0: not available
  bool reduced = false;       // level reduced works (on most machines it does beside full)

  [[nodiscard]] bool offers(Level wanted) const {
    return wanted == Level::none || (wanted == Level::reduced ? reduced : level == Level::full);
  }
};
const Support& support();

struct Limits {
  double cpu_seconds = 0;              // per process; 0: none
  std::int64_t memory_bytes = 0;       // address space of each process; 0: none. Not applied in sanitizer builds
  std::int64_t file_bytes = 64 << 20;  // largest file
  std::int64_t open_files = 256;
  std::int64_t processes = 256;  // and threads, together. No limit for a root that stays root (level none)
  std::int64_t scratch_bytes =
      64 << 20;  // size of the private /tmp (full); reduced has no writable folder but `writable`
};

/// Which system calls pass. Known others fail with EPERM; numbers newer than our table, and clone3, with ENOSYS, so
/// that the C library falls back to an older call.
enum class Profile {
  compiler,  // may start programs
  worker,    // threads only: no exec, no fork, no sockets, no ptrace, no new namespaces, no memfd
  device,    // the same with what a GPU's driver needs: for host code of ours around foreign kernels
};

/// When we are root (and may change users) the program runs as a user of its own. A bind must therefore be readable by
/// everybody (o+r; o+rx for folders and programs); a writable folder is given to that user (chown, not recursive). At
/// level full the folders on the way to it may stay closed, at level reduced they may not (`first_closed_folder`). What
/// a sandbox wrote is foreign: open it with O_NOFOLLOW.
struct Bind {
  std::filesystem::path host;    // absolute
  std::filesystem::path inside;  // at level full, empty: as `host`; levels reduced and none use the host path
};

struct Spec {
  Level level = Level::full;
  Profile profile = Profile::worker;
  std::vector<std::string> argv;         // argv[0]: absolute path as seen inside
  std::vector<std::string> environment;  // "NAME=value"; nothing is inherited
  std::vector<Bind> read_only;           // beside /usr, /lib*, /bin, /etc/{ld.so.cache,alternatives}
  std::vector<Bind> writable;
  std::vector<std::filesystem::path> devices;  // device files, usable
  std::string directory = "/";                 // working directory as seen inside
  std::vector<std::pair<int, int>> fds;        // (ours, number inside, from 3 on); all others are closed
  int output = -1;                             // stdout and stderr; -1: /dev/null
  Limits limits;
};

/// Where a bind ends up for a given level.
std::filesystem::path seen_at(const Bind& bind, Level level);

/// The first folder on the way to `path` that other users may not enter; empty when there is none.
std::filesystem::path first_closed_folder(const std::filesystem::path& path);

/// A started child. Destroying it kills the whole sandbox and reaps it.
class Child {
 public:
  Child() = default;
  /// `info`: at level full, the pipe on which bubblewrap tells the pid of its init.
  explicit Child(pid_t pid, UniqueFd info = {}) : pid_(pid), info_(std::move(info)) {}
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), info_(std::move(other.info_)), status_(other.status_) {}
  Child& operator=(Child&& other) noexcept;
  ~Child() { kill_and_reap(); }

  [[nodiscard]] pid_t pid() const {
    return pid_;
  }  // of the launcher; the program's own pid arrives with its first message
  /// Waits up to `seconds` (0: just looks). The wait status once ended, the same at every level (at full, an exit code
  /// of 128 + n is taken for death by signal n: bubblewrap reports it so).
  std::optional<int> wait(double seconds);
  /// Returns when nothing of the sandbox runs any more.
  void kill_and_reap();

 private:
  pid_t pid_ = -1;
  UniqueFd info_;
  std::optional<int> status_;
};

/// Starts the program. It dies with the *thread* that calls this (kernel: PR_SET_PDEATHSIG), so call it from one that
/// lives as long as the Child. Error(machine) when the level is not available here, Error(internal) when a bind is
/// missing or closed to the sandbox's user.
///
/// At level reduced nothing but the process group holds a compiler's own children together: they die with the Child,
/// but when we are killed they run on until they end or meet their CPU limit.
Child spawn(const Spec& spec);

/// For the program inside: gives up what only its start needed, for good and for all its threads. No-op at level none.
/// Aborts the process when the kernel refuses. Sanitizer builds: run the program with detect_leaks=0 (LSan needs
/// ptrace).
void restrict_self(Level level, Profile profile);

struct RunResult {
  int exit_code = -1;  // valid when signal == 0 and not timed_out
  int signal = 0;
  bool timed_out = false;
  bool truncated = false;  // output went beyond the limit
  std::string output;
  double seconds = 0;

  [[nodiscard]] bool ok() const { return exit_code == 0 && signal == 0 && !timed_out; }
};

/// Starts, collects at most `output_limit` bytes of stdout and stderr together, waits at most `seconds`, kills what is
/// left.
RunResult run(Spec spec, double seconds, std::size_t output_limit);

}  // namespace kbh::sandbox
