// The worker's view of the grader's memory.
#pragma once

#include <cstddef>

namespace kbh::worker {

/// Whole pages of a shared file between two unmapped pages.
class GuardedMapping {
 public:
  /// Maps `bytes` (a multiple of the page) at `offset` of `fd`. Throws Error(internal).
  GuardedMapping(int fd, std::size_t offset, std::size_t bytes, bool writable);
  GuardedMapping(GuardedMapping&& other) noexcept;
  GuardedMapping& operator=(GuardedMapping&&) = delete;
  ~GuardedMapping();
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kbh::worker
