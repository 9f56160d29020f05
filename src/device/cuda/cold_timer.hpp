// The time of one call on a GPU whose caches hold nothing of it: docs/timing.md, "On a GPU".
#pragma once

#include <functional>

#include "device/cuda/device.hpp"
#include "device/cuda/device_code.hpp"

namespace kbh::cuda {

/// What is done to the second-level cache before a sample.
enum class Flush {
  clean,  // persisting lines reset, a write sweep, then a read sweep: no line of the call, and none to write back
  dirty,  // the write sweep alone, as other tools do: the write-back of its lines is billed to the call
  none,
};

struct TimedCall {
  CUresult status = CUDA_SUCCESS;  // of the device after the call; everything but success is the call's doing
  bool timed_out = false;          // it still runs: end this process
  bool gave_up = false;            // the gate's limit passed while the call was being queued
  double event_us = 0;             // between two events around it
  double host_us = 0;              // by the host's clock, from opening the gate to seeing the second event
  double clock_mhz = 0;            // of a multiprocessor, mean since before the flush
};

/// What a time cannot be below in this process: medians of cold samples. From process to process they differ by 0.2 us
/// (H200), and with them every time that is measured.
struct Floors {
  double nothing_us = 0;       // two events with nothing between them
  double empty_kernel_us = 0;  // one block of one thread that does nothing
};

class ColdTimer {
 public:
  /// For the current context. `sweep_bytes`: what is written and read, at least 4 times the cache.
  ColdTimer(const DeviceInfo& device, std::int64_t sweep_bytes);

  /// `queue` puts the call on the stream: kernels and memsets, nothing that waits.
  TimedCall time(const std::function<void(CUstream)>& queue, Flush flush, double limit_seconds);

  Floors floors();

  /// Waits for the stream, at most so long; true when it is done.
  static bool wait(CUstream stream, double limit_seconds, CUresult* status);

  [[nodiscard]] CUstream stream() const { return stream_.get(); }

 private:
  void sweep(Flush flush);
  void probe(int which);

  Stream stream_;
  Module code_;
  CUfunction gate_;
  CUfunction clock_;
  CUfunction write_sweep_;
  CUfunction read_sweep_;
  CUfunction empty_;
  int multiprocessors_;
  std::int64_t sweep_bytes_;
  DeviceMemory swept_;
  HostMemory flags_;  // gate open, gate gave up, sink of the read sweep; then two clock readings
  Event ready_;
  Event begin_;
  Event end_;
  unsigned salt_ = 0;
};

}  // namespace kbh::cuda
