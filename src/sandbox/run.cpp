#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/error.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/untested.hpp"

namespace kbh::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

class Collector {
 public:
  Collector(int fd, std::size_t limit, RunResult& result) : fd_(fd), limit_(limit), result_(result) {}

  /// Takes what is there without waiting. What goes beyond the limit is read and dropped, so that the writer does not
  /// block.  At most 1 MiB at a time: an endless writer must not keep us from the clock.
  void drain() {
    char chunk[1 << 16];
    for (int i = 0; i < 16 && !ended_; ++i) {
      const ssize_t n = ::read(fd_, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;
      if (n == 0) ended_ = true;
      const auto taken = std::min(static_cast<std::size_t>(n), limit_ - result_.output.size());
      result_.output.append(chunk, taken);
      if (taken < static_cast<std::size_t>(n)) result_.truncated = true;
    }
  }
  void await(double seconds) const {
    pollfd poll{.fd = fd_, .events = POLLIN, .revents = 0};
    ::poll(&poll, 1, std::max(0, static_cast<int>(seconds * 1e3)));
  }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  int fd_;
  std::size_t limit_;
  RunResult& result_;
  bool ended_ = false;
};

RunResult collect(Child child, int fd, double seconds, std::size_t output_limit) {
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  RunResult result;
  Collector collector(fd, output_limit, result);
  std::optional<int> status;
  while (!status && elapsed() < seconds) {
    const double left = seconds - elapsed();
    if (!collector.ended()) {
      // The end of the output tells the end of the program, except when something it left behind holds the pipe open.
      collector.await(std::min(left, 0.05));
      collector.drain();
    }
    status = child.wait(collector.ended() ? left : 0);
  }
  if (!status) {
    result.timed_out = true;
    child.kill_and_reap();
  }
  collector.drain();
  result.seconds = elapsed();
  if (!status) return result;
  if (WIFSIGNALED(*status))
    result.signal = WTERMSIG(*status);
  else
    result.exit_code = WEXITSTATUS(*status);
  return result;
}

template <typename Spawn>
RunResult run_with(Spawn spawn_it, Spec spec, double seconds, std::size_t output_limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot make a pipe");
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  ::fcntl(out.get(), F_SETFL, O_NONBLOCK);
  spec.output = in.get();
  Child child = spawn_it(spec);
  in.reset();
  return collect(std::move(child), out.get(), seconds, output_limit);
}

}  // namespace

RunResult run(Spec spec, double seconds, std::size_t output_limit) {
  return run_with(spawn, std::move(spec), seconds, output_limit);
}

RunResult run_untested(Spec spec, double seconds, std::size_t output_limit) {
  return run_with(spawn_untested, std::move(spec), seconds, output_limit);
}

}  // namespace kbh::sandbox
