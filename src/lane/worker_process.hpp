// A sandboxed kbh-worker as the grader holds it: started, asked, listened to, ended.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh {

class WorkerProcess {
 public:
  /// Keeps at most `log_bytes` of what the worker prints.
  explicit WorkerProcess(std::size_t log_bytes);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Adds the socket and the output to `box`, starts it and waits for its first message. Returns its pid. Throws
  /// Error(internal), with what it printed, when it does not come up.
  pid_t start(sandbox::Spec box);

  /// The answer to one message; nothing when none came, with `problem` "timeout" or what else went wrong.
  std::optional<Json> ask(const Json& message, double seconds, std::string* problem, std::span<const int> fds = {});

  /// Waits up to `seconds` for its end; its wait status.
  std::optional<int> wait(double seconds);

  /// Kills what still runs. The log is complete afterwards.
  void end();

  [[nodiscard]] std::string log() const;
  [[nodiscard]] bool log_truncated() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The last lines of a log: often the best explanation there is.
std::vector<std::string> last_lines(const std::string& text, std::size_t count);

}  // namespace kbh
