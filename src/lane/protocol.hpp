// What the grader and the worker say to each other.
//
// Two channels. A unix stream socket carries length-prefixed JSON (and file descriptors) for everything that is not
// timed. A shared page carries "go" and "done" of calls, as futexes, so that no system call but the wake-up lies
// between the grader's clock and the submission. Everything the worker writes is a claim: the grader copies it out,
// checks its range, and never decides on it alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/json.hpp"

namespace kbh::protocol {

inline constexpr int kSocketFd = 3;   // inside the worker
inline constexpr int kControlFd = 4;  // inside the worker
inline constexpr std::size_t kMaxMessage = 4 << 20;
inline constexpr std::uint32_t kMaxBatch = 256;
inline constexpr std::size_t kMaxFds = 200;  // in one message; Linux takes 253

enum class Command : std::uint32_t {
  calls = 0,  // run the slots listed
  empty = 1,  // the same without a submission: calibrates the grader's clock
  leave = 2,  // back to the socket
};

struct Control {
  std::atomic<std::uint32_t> go;    // futex: the grader counts up
  std::atomic<std::uint32_t> done;  // futex: the worker stores go's value
  Command command;
  std::uint32_t count;
  std::uint32_t slots[kMaxBatch];
  // Claims of the worker:
  std::int64_t begin_ns[kMaxBatch];  // CLOCK_MONOTONIC
  std::int64_t end_ns[kMaxBatch];
  std::int32_t status[kMaxBatch];  // what kbh_run returned
  std::int32_t fault_signal;       // set by the fault handler
  std::uint64_t fault_address;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Sends one message; `fds` travel with it. False when the peer is gone.
bool send(int socket, const Json& message, std::span<const int> fds = {});

struct Received {
  Json message;
  std::vector<UniqueFd> fds;
  std::int32_t sender_pid = 0;  // as the kernel says, when the socket has SO_PASSCRED
};

/// Receives one message within `seconds` (negative: for ever). Nothing on end of stream, time-out, or a malformed
/// message; `problem` then says which.
std::optional<Received> receive(int socket, double seconds, std::string* problem);

void futex_wake(std::atomic<std::uint32_t>* word);
/// Returns when `*word != value`, after `seconds`, or spuriously.
void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t value, double seconds);

std::int64_t now_ns();  // CLOCK_MONOTONIC

}  // namespace kbh::protocol
