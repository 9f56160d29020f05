#include "lane/worker_process.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "lane/protocol.hpp"

namespace kbh {
namespace {

constexpr double kStartSeconds = 20;

/// Keeps what arrives on a pipe, up to a limit, and goes on draining it.
class LogDrain {
 public:
  explicit LogDrain(std::size_t limit) : limit_(limit) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("pipe");
    read_ = UniqueFd(ends[0]);
    write_ = UniqueFd(ends[1]);
  }
  [[nodiscard]] int write_end() const { return write_.get(); }

  /// The child has its copy now; ours would keep the pipe open for ever.
  void start() {
    write_.reset();
    thread_ = std::thread([this] { drain(); });
  }
  /// Waits for end of file: call it when the child is gone.
  void finish() {
    if (thread_.joinable()) thread_.join();
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool truncated() {
    const std::lock_guard lock(mutex_);
    return truncated_;
  }

 private:
  void drain() {
    char chunk[1 << 16];
    for (;;) {
      const ssize_t n = ::read(read_.get(), chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      const std::lock_guard lock(mutex_);
      const std::size_t room = limit_ - std::min(limit_, text_.size());
      text_.append(chunk, std::min(room, static_cast<std::size_t>(n)));
      truncated_ |= static_cast<std::size_t>(n) > room;
    }
  }

  std::size_t limit_;
  UniqueFd read_;
  UniqueFd write_;
  std::thread thread_;
  std::mutex mutex_;
  std::string text_;
  bool truncated_ = false;
};

}  // namespace

struct WorkerProcess::Impl {
  LogDrain log;
  UniqueFd socket;
  sandbox::Child child;

  explicit Impl(std::size_t log_bytes) : log(log_bytes) {}
};

WorkerProcess::WorkerProcess(std::size_t log_bytes) : impl_(std::make_unique<Impl>(log_bytes)) {}

WorkerProcess::~WorkerProcess() { end(); }

pid_t WorkerProcess::start(sandbox::Spec box) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_errno("socketpair");
  impl_->socket = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  const int on = 1;
  ::setsockopt(impl_->socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  box.fds.emplace_back(theirs.get(), protocol::kSocketFd);
  box.output = impl_->log.write_end();
  impl_->child = sandbox::spawn(box);
  impl_->log.start();

  std::string problem;
  const auto hello = protocol::receive(impl_->socket.get(), kStartSeconds, &problem);
  if (!hello || !hello->message.contains("hello")) {
    end();
    fail(ErrorKind::internal, "the worker did not start ({}): {}", problem, log());
  }
  return hello->sender_pid;
}

std::optional<Json> WorkerProcess::ask(const Json& message, double seconds, std::string* problem,
                                       std::span<const int> fds) {
  *problem = "closed";
  std::optional<protocol::Received> answer;
  if (protocol::send(impl_->socket.get(), message, fds))
    answer = protocol::receive(impl_->socket.get(), seconds, problem);
  if (!answer) return std::nullopt;
  return std::move(answer->message);
}

std::optional<int> WorkerProcess::wait(double seconds) { return impl_->child.wait(seconds); }

void WorkerProcess::end() {
  impl_->child.kill_and_reap();
  impl_->log.finish();
}

std::string WorkerProcess::log() const { return impl_->log.text(); }
bool WorkerProcess::log_truncated() const { return impl_->log.truncated(); }

std::vector<std::string> last_lines(const std::string& text, std::size_t count) {
  std::vector<std::string> lines;
  std::istringstream stream(text.substr(text.size() - std::min<std::size_t>(text.size(), 4096)));
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line.substr(0, 200));
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

}  // namespace kbh
