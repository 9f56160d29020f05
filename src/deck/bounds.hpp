// What physics allows: the least time of a shape on given hardware, and what that leaves of upstream's score.
#pragma once

#include <map>
#include <string>

#include "deck/deck.hpp"

namespace kbh {

/// What the hardware can do at most: a deck's datasheet figures, or the measured ceilings of the machine that grades.
struct Peaks {
  std::map<std::string, double> tflops;  // by dtype name, dense
  double bandwidth_gbs = 0;              // 1e9 bytes per second
};

/// The deck's datasheet figures; aborts on a deck with measured peaks, which has none.
Peaks datasheet_peaks(const Deck& deck);

/// The peak for arithmetic in `dtype`. Hardware without it computes in the narrowest wider format that it has (every
/// e4m3 number is a bf16 and an fp16 number, every one of those an fp32 number). 0 when there is none at all.
double peak_tflops(const Peaks& peaks, DType dtype);

/// The least times of one shape, in microseconds.
struct Bound {
  double compute_us = 0;   // true floating-point operations at the peak of their dtype
  double memory_us = 0;    // every byte once at full bandwidth
  double upstream_us = 0;  // upstream's own formula for the one resource that it grades (the problem's regime)

  [[nodiscard]] double roofline_us() const;
  [[nodiscard]] Regime binds() const;
  /// The highest upstream_fraction that any kernel can reach here: upstream_us / roofline_us.
  [[nodiscard]] double upstream_ceiling() const { return upstream_us / roofline_us(); }
};

Bound bound_of(const Problem& problem, const Shape& shape, const Peaks& peaks);

}  // namespace kbh
