// Pure functions over samples. No state, no clocks.
#pragma once

#include <span>
#include <vector>

namespace kbh {

/// Linear interpolation between order statistics (numpy's default). `q` in [0, 1]. Aborts on an empty span.
double quantile(std::span<const double> samples, double q);
inline double median(std::span<const double> samples) { return quantile(samples, 0.5); }

struct Interval {
  double low = 0;
  double high = 0;
};

/// Distribution-free interval of the median at 95 % (order statistics of the binomial with p = 1/2). With fewer than
/// six samples no such interval exists; the range is returned.
Interval median_interval(std::span<const double> samples);

/// exp(mean(log x)). Aborts when a value is not positive, returns 0 for an empty span.
double geometric_mean(std::span<const double> values);

/// Slope of the least-squares line through (x, y).
double slope(std::span<const double> x, std::span<const double> y);

}  // namespace kbh
