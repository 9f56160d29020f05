// Matrix products of the oracles on the GPU that grades.
#pragma once

#include <cstdint>
#include <span>

#include "device/cuda/device_code.hpp"

namespace kbh::cuda {

class Multiplier {
 public:
  /// For the current context.
  Multiplier();

  /// As kbh::multiply (problem/matrix.hpp), with the same bounds on its error: sums in the order of k, fused.
  void operator()(std::int64_t m, std::int64_t n, std::int64_t k, std::span<const double> a, std::span<const double> b,
                  std::span<double> c);

 private:
  struct Buffer {
    DeviceMemory memory;
    std::size_t bytes = 0;
    CUdeviceptr at_least(std::size_t wanted);
  };
  Stream stream_;
  Module code_;
  CUfunction multiply_;
  Buffer a_;  // kept: the next product is often as large
  Buffer b_;
  Buffer c_;
};

}  // namespace kbh::cuda
