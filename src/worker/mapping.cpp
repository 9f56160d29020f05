#include "worker/mapping.hpp"

#include <sys/mman.h>

#include <utility>

#include "base/error.hpp"

namespace kbh::worker {
namespace {
// A write that strays up to 64 KiB beyond a buffer faults; further strays most likely do, since nothing else is near.
constexpr std::size_t kGuard = 1 << 16;
}  // namespace

GuardedMapping::GuardedMapping(int fd, std::size_t offset, std::size_t bytes, bool writable) : bytes_(bytes) {
  void* reserved = ::mmap(nullptr, bytes + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) fail_errno("cannot reserve address space");
  data_ = static_cast<std::byte*>(reserved) + kGuard;
  // Populated now: a first-touch fault (0.25 us a page, 2000 of them for 8 MB) must not be billed to a timed call.
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  if (::mmap(data_, bytes, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, static_cast<off_t>(offset)) ==
      MAP_FAILED)
    fail_errno("cannot map a buffer");
}

GuardedMapping::GuardedMapping(GuardedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

GuardedMapping::~GuardedMapping() {
  if (data_) ::munmap(data_ - kGuard, bytes_ + 2 * kGuard);
}

}  // namespace kbh::worker
