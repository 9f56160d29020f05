// Memory that the grader owns and the worker sees: one sealed memfd per kind of access, holding the buffers of many
// slots.
//
// The worker maps each buffer by itself between unmapped pages (worker/mapping.hpp). In even slots a buffer ends at the
// page behind it, in odd slots it starts at the page before it, so that an overrun at either end faults; bytes between
// a buffer and its page's edge hold a canary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace kbh::cpu {

enum class Access {
  read_only,  // for the worker: sealed, a writable mapping cannot be made any more
  read_write,
};

class SharedArena {
 public:
  SharedArena() = default;
  /// Room for `bytes` bytes, zeroed. The size is sealed at once.
  SharedArena(std::size_t bytes, Access access, const std::string& name);
  SharedArena(SharedArena&& other) noexcept;
  SharedArena& operator=(SharedArena&& other) noexcept;
  ~SharedArena();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Where one tensor of one slot lies in its arena.
struct Placement {
  std::size_t page_offset = 0;  // of the first page, in the arena
  std::size_t pages_bytes = 0;  // whole pages that the worker maps
  std::size_t offset = 0;       // of the first element, in the arena
  std::size_t bytes = 0;        // of the tensor
};

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kAlignment = 64;  // promised to submissions

/// Lays `bytes` out at or behind `*cursor` and moves the cursor on.
Placement place(std::size_t bytes, bool at_end, std::size_t* cursor);

/// Fills the slack around a tensor with a pattern derived from `salt`.
void write_canary(std::byte* arena, const Placement& placement, std::uint64_t salt);
bool canary_intact(const std::byte* arena, const Placement& placement, std::uint64_t salt);

}  // namespace kbh::cpu
