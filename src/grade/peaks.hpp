// The measured ceilings of a CPU in the words of a deck's peaks.
#pragma once

#include "deck/bounds.hpp"
#include "device/cpu/ceilings.hpp"

namespace kbh {

inline Peaks measured_peaks(const cpu::Ceilings& ceilings) {
  Peaks peaks{.tflops = {}, .bandwidth_gbs = ceilings.memory_read_gbs()};
  for (const auto& [dtype, gflops] : ceilings.peak_gflops) peaks.tflops[dtype] = gflops * 1e-3;
  return peaks;
}

}  // namespace kbh
