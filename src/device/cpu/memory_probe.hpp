#pragma once

#include <cstdint>
#include <memory>

namespace kbh::cpu {

/// How fast memory is right now: all processors together read 4 MiB of their own once. Called after a cache flush it
/// times the same thing as a memory-bound submission's cold call, without the submission; on a machine that shares its
/// memory with others, both slow down together (docs/timing.md).
class MemoryProbe {
 public:
  /// Error(machine) when the buffer or the threads cannot be had.
  MemoryProbe();
  ~MemoryProbe();
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;

  /// What the slowest processor's part took, in microseconds. (They begin together; one that had to wait for its turn
  /// on a busy machine is not counted as slow memory.)
  double read_us();
  [[nodiscard]] std::int64_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kbh::cpu
