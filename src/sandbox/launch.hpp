// The way from fork to exec. A Launch is complete before the fork: grader threads may hold any lock at that moment, so
// the child allocates nothing and calls nothing but the kernel.
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.hpp"

namespace kbh::sandbox {

/// Folder or file that gets a second, reachable name in a mount namespace of the launcher's own.
struct Reachable {
  std::string source;
  std::string name;
  bool folder = true;
  int fd = -1;  // used by the child
};

struct Launch {
  UniqueFd program;  // O_PATH
  std::string path;  // for scripts, which cannot be started by descriptor
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string directory = "/";
  std::vector<std::pair<UniqueFd, int>> fds;  // (ours, number inside), ours numbered `first_own` and up
  int first_own = 3;
  std::vector<int> kept;  // of our own descriptors: those that the launched program (bubblewrap) reads itself
  std::vector<std::pair<int, rlimit>> limits;
  std::vector<Reachable> reachable;
  uid_t uid = 0;  // 0: stay who we are
  bool drop_capabilities = false;
  UniqueFd landlock;                                  // optional
  const std::vector<sock_filter>* seccomp = nullptr;  // optional
};

/// Starts it in a session and process group of its own. Error(machine) names the step that failed.
pid_t start(Launch launch);

}  // namespace kbh::sandbox
