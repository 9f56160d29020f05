#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>

#include "sandbox/sandbox.hpp"

namespace kbh::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

bool wait_for_end(pid_t pid, double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  while (!has_ended(pid)) {
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    // Where pidfd_open is forbidden (old container run times): look every millisecond.
    const int slice = process ? static_cast<int>(std::min(std::ceil(left * 1e3), 1e6)) : 1;
    pollfd poll{.fd = process.get(), .events = POLLIN, .revents = 0};
    ::poll(&poll, process ? 1 : 0, slice);
  }
  return true;
}

// The init of the sandbox, from bubblewrap's {"child-pid": N}; 0 when it has not got that far.
pid_t init_of(int info) {
  pollfd poll{.fd = info, .events = POLLIN, .revents = 0};
  char text[512];
  if (::poll(&poll, 1, 0) != 1) return 0;
  const ssize_t n = ::read(info, text, sizeof text);
  const std::string_view json(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  const auto colon = json.find(':');
  if (colon == std::string_view::npos) return 0;
  const auto digit = json.find_first_not_of(" \t\n", colon + 1);
  if (digit == std::string_view::npos) return 0;
  pid_t pid = 0;
  std::from_chars(json.data() + digit, json.data() + json.size(), pid);
  return pid;
}

// At level full the program's death by signal n arrives as exit code 128 + n.
int plain(int status, bool through_bubblewrap) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return through_bubblewrap && code > 128 && code < 128 + 65 ? code - 128 : status;
}

}  // namespace

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  kill_and_reap();
  pid_ = std::exchange(other.pid_, -1);
  info_ = std::move(other.info_);
  status_ = other.status_;
  return *this;
}

std::optional<int> Child::wait(double seconds) {
  if (pid_ <= 0 || status_) return status_;
  if (!wait_for_end(pid_, seconds)) return std::nullopt;
  ::kill(-pid_, SIGKILL);  // what it left behind; before the reaping, so that the number is still its own
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = plain(status, static_cast<bool>(info_));
  return status_;
}

void Child::kill_and_reap() {
  if (pid_ <= 0 || status_) return;
  // The kernel ends everything in a pid namespace before its init is gone, and bubblewrap waits for that one: when it
  // returns, nothing runs any more. Killing bubblewrap alone would work too, but a moment later.
  const pid_t init = info_ && !has_ended(pid_) ? init_of(info_.get()) : 0;
  constexpr double kPatience = 2;
  if (init > 0 && ::kill(init, SIGKILL) == 0 && wait(kPatience)) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  while (!wait(60)) {
  }
}

}  // namespace kbh::sandbox
