#pragma once

#include <cstdint>
#include <memory>

namespace kbh::cpu {

/// Empties the caches of every processor with a buffer of four times the last-level cache: the first half is written
/// and read again, the second half is only read, so that no dirty line's write-back is billed to the next call
/// (docs/timing.md). Pinned threads do it, one per processor; they are kept and sleep between flushes.
class CacheFlusher {
 public:
  /// Error(machine) when the buffer or the threads cannot be had.
  CacheFlusher();
  ~CacheFlusher();
  CacheFlusher(const CacheFlusher&) = delete;
  CacheFlusher& operator=(const CacheFlusher&) = delete;
  /// Returns when all processors are done.
  void flush();
  /// Size of the buffer.
  [[nodiscard]] std::int64_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Time of a fixed chain of dependent additions on the calling thread, in nanoseconds (about 50 us at 3 GHz). Its
/// changes are changes of the clock or stolen time.
double speed_probe_ns();

}  // namespace kbh::cpu
