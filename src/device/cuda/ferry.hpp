// Large copies between ordinary memory of the host and the device.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "device/cuda/driver.hpp"

namespace kbh::cuda {

/// Goes by way of two page-locked stops: the bus runs at its full speed from and to those only, and while one crosses,
/// all processors fill or empty the other.
class Ferry {
 public:
  /// For the current context.
  Ferry();

  /// `from` may change when this returns; the device has it when `stream` gets there.
  void to_device(CUdeviceptr to, std::span<const std::byte> from, CUstream stream);

  /// What `stream` has left at `from`; it is there when this returns.
  void to_host(std::span<std::byte> to, CUdeviceptr from, CUstream stream);

 private:
  struct Stop {
    HostMemory memory;
    Event idle;  // recorded behind the copy that uses it
  };
  std::array<Stop, 2> stops_;
};

}  // namespace kbh::cuda
