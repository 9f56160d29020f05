#include "deck/bounds.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace kbh {
namespace {

/// The formats that hold every number of `dtype`, narrowest first.
std::vector<DType> holders_of(DType dtype) {
  switch (dtype) {
    case DType::e4m3:
    case DType::i8:
      return {dtype, DType::bf16, DType::f16, DType::f32, DType::f64};
    case DType::bf16:
    case DType::f16:
      return {dtype, DType::f32, DType::f64};
    default:
      return {dtype, DType::f64};
  }
}

}  // namespace

Peaks datasheet_peaks(const Deck& deck) {
  expect(!deck.measured_peaks, "a deck with measured peaks has no datasheet");
  return {deck.peak_tflops, deck.bandwidth_gbs};
}

double peak_tflops(const Peaks& peaks, DType dtype) {
  for (const DType holder : holders_of(dtype))
    if (const auto found = peaks.tflops.find(std::string(name_of(holder))); found != peaks.tflops.end())
      return found->second;
  return 0;
}

double Bound::roofline_us() const { return std::max(compute_us, memory_us); }

Regime Bound::binds() const { return compute_us > memory_us ? Regime::compute : Regime::memory; }

Bound bound_of(const Problem& problem, const Shape& shape, const Peaks& peaks) {
  const Work work = problem.work(shape);
  const double tflops = peak_tflops(peaks, work.flops_dtype);
  // 1e12 operations per second are 1e6 per microsecond, 1e9 bytes per second 1e3.
  const auto compute = [&](double flops) { return tflops > 0 ? flops / (tflops * 1e6) : 0; };
  const auto memory = [&](double bytes) { return bytes / (peaks.bandwidth_gbs * 1e3); };
  return {.compute_us = compute(work.flops),
          .memory_us = memory(work.min_bytes),
          .upstream_us = problem.regime == Regime::memory ? memory(work.upstream_bytes) : compute(work.upstream_flops)};
}

}  // namespace kbh
