// What the machine that grades can do at most, in the same words for every device.
#pragma once

#include <algorithm>
#include <functional>

#include "deck/bounds.hpp"
#include "device/cpu/ceilings.hpp"
#ifdef KBH_WITH_CUDA
#include "device/cuda/ceilings.hpp"
#endif

namespace kbh {

struct MachineLimits {
  Peaks peaks;               // measured, sustained
  double call_floor_us = 0;  // of a call that does nothing
  /// Reading so many bytes once from memory, without the floor.
  std::function<double(double bytes)> cold_us;
};

inline Peaks measured_peaks(const cpu::Ceilings& ceilings) {
  Peaks peaks{.tflops = {}, .bandwidth_gbs = ceilings.memory_read_gbs()};
  for (const auto& [dtype, gflops] : ceilings.peak_gflops) peaks.tflops[dtype] = gflops * 1e-3;
  return peaks;
}

inline MachineLimits limits_of(const cpu::Ceilings& ceilings) {
  return {measured_peaks(ceilings), ceilings.call_floor_us, [ceilings](double bytes) {
            return bytes / ceilings.cold_read_gbs_at(static_cast<std::int64_t>(bytes)) * 1e-3;
          }};
}

#ifdef KBH_WITH_CUDA
inline MachineLimits limits_of(const cuda::Ceilings& ceilings) {
  Peaks peaks{.tflops = {}, .bandwidth_gbs = ceilings.memory_read_gbs()};
  for (const auto& [dtype, peak] : ceilings.math) peaks.tflops[dtype] = ceilings.peak_tflops(dtype);
  const double floor = ceilings.launch_floor_us();
  return {peaks, floor, [ceilings, floor](double bytes) {
            return std::max(0.0, ceilings.cold_read_us_at(static_cast<std::int64_t>(bytes)) - floor);
          }};
}
#endif

}  // namespace kbh
