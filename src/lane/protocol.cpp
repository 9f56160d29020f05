#include "lane/protocol.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.hpp"

namespace kbh::protocol {
namespace {

timespec to_timespec(double seconds) {
  timespec t{};
  t.tv_sec = static_cast<time_t>(seconds);
  t.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  return t;
}

bool send_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(socket, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Reads exactly `size` bytes before `deadline_ns`; keeps descriptors and credentials that arrive on the way.
bool read_exactly(int socket, char* data, std::size_t size, std::int64_t deadline_ns, Received* received,
                  std::string* problem) {
  while (size > 0) {
    pollfd waiting{socket, POLLIN, 0};
    int timeout_ms = -1;
    if (deadline_ns >= 0) {
      const std::int64_t left = deadline_ns - now_ns();
      if (left <= 0) return *problem = "timeout", false;
      timeout_ms = static_cast<int>(left / 1'000'000 + 1);
    }
    const int ready = ::poll(&waiting, 1, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return *problem = "timeout", false;

    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int)) + CMSG_SPACE(sizeof(ucred))> ancillary{};
    iovec part{data, size};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = ancillary.data();
    header.msg_controllen = ancillary.size();
    const ssize_t n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return *problem = "closed", false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level != SOL_SOCKET) continue;
      if (c->cmsg_type == SCM_RIGHTS) {
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
          int fd = -1;
          std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
          received->fds.emplace_back(fd);
        }
      } else if (c->cmsg_type == SCM_CREDENTIALS) {
        ucred sender{};
        std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
        received->sender_pid = sender.pid;
      }
    }
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

bool send(int socket, const Json& message, std::span<const int> fds) {
  expect(fds.size() <= kMaxFds, "so many descriptors fit into one message");
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto length = static_cast<std::uint32_t>(text.size());
  // The descriptors ride on the length prefix.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> ancillary{};
  char prefix[sizeof length];
  std::memcpy(prefix, &length, sizeof length);
  iovec part{prefix, sizeof prefix};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = ancillary.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent != static_cast<ssize_t>(sizeof prefix)) return false;
  return send_all(socket, text.data(), text.size());
}

std::optional<Received> receive(int socket, double seconds, std::string* problem) {
  const std::int64_t deadline = seconds < 0 ? -1 : now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  Received received;
  std::uint32_t length = 0;
  if (!read_exactly(socket, reinterpret_cast<char*>(&length), sizeof length, deadline, &received, problem))
    return std::nullopt;
  if (length > kMaxMessage) return *problem = "message too long", std::nullopt;
  std::string text(length, '\0');
  if (!read_exactly(socket, text.data(), length, deadline, &received, problem)) return std::nullopt;
  received.message = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!received.message.is_object()) return *problem = "not a JSON object", std::nullopt;
  return received;
}

void futex_wake(std::atomic<std::uint32_t>* word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t value, double seconds) {
  const timespec timeout = to_timespec(seconds);
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAIT, value, &timeout, nullptr, 0);
}

std::int64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace kbh::protocol
