// One GPU: what it is, and its primary context.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/driver.hpp"

namespace kbh::cuda {

struct DeviceInfo {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-...", as nvidia-smi writes it
  int major = 0;     // compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  int max_clock_khz = 0;  // of the multiprocessors
  int max_memory_clock_khz = 0;
  int memory_bus_bits = 0;
  int driver_version = 0;  // 13000 for CUDA 13.0: the newest that the driver serves

  /// Theoretical, from bus width and clock: no kernel exceeds it.
  [[nodiscard]] double bus_gbs() const;
  bool operator==(const DeviceInfo&) const = default;
};

/// All devices of this machine. Error(machine) when there is no driver or none of them.
std::vector<DeviceInfo> devices();

/// Error(usage) when there is no such device.
DeviceInfo device_info(int index);

/// Makes the device's primary context current for this thread as long as it lives.
class Context {
 public:
  explicit Context(int index);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  [[nodiscard]] CUdevice device() const { return device_; }

 private:
  CUdevice device_ = 0;
};

}  // namespace kbh::cuda
