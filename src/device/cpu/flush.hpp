#pragma once

#include <cstdint>
#include <memory>

namespace kbh::cpu {

/// Empties the caches of every processor: each pinned thread writes its part of a buffer of >= 4x the last-level cache,
/// then reads it clean, so that no dirty line's write-back is billed to the next call (docs/timing.md).
/// Threads are kept and sleep between flushes.
class CacheFlusher {
 public:
  CacheFlusher();
  ~CacheFlusher();
  CacheFlusher(const CacheFlusher&) = delete;
  CacheFlusher& operator=(const CacheFlusher&) = delete;
  void flush();
  [[nodiscard]] std::int64_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Time of a fixed chain of dependent additions on the calling thread, in nanoseconds (about 50 us at 3 GHz). Its changes
/// are changes of the clock or stolen time.
double speed_probe_ns();

}  // namespace kbh::cpu
