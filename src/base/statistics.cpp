#include "base/statistics.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace kbh {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

}  // namespace

double quantile(std::span<const double> samples, double q) {
  expect(!samples.empty() && q >= 0 && q <= 1, "quantile of a non-empty sample, q in [0, 1]");
  const std::vector<double> s = sorted(samples);
  const double position = q * static_cast<double>(s.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, s.size() - 1);
  return s[below] + (position - static_cast<double>(below)) * (s[above] - s[below]);
}

Interval median_interval(std::span<const double> samples) {
  expect(!samples.empty(), "interval of a non-empty sample");
  const std::vector<double> s = sorted(samples);
  const std::size_t n = s.size();
  if (n < 6) return {s.front(), s.back()};
  // Largest r with P(Binomial(n, 1/2) < r) <= 2.5 %: the interval [s[r], s[n-1-r]] covers the median at 95 %.
  // In logarithms: 2^-n is 0 in double from n = 1075 on.
  double log_term = -static_cast<double>(n) * std::log(2.0);
  double cumulative = std::exp(log_term);
  std::size_t r = 0;
  while (cumulative <= 0.025) {
    ++r;
    log_term += std::log(static_cast<double>(n - r + 1) / static_cast<double>(r));
    cumulative += std::exp(log_term);
  }
  r = r == 0 ? 0 : r - 1;
  return {s[r], s[n - 1 - r]};
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double v : values) {
    expect(v > 0, "geometric mean of positive values");
    sum += std::log(v);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

double slope(std::span<const double> x, std::span<const double> y) {
  expect(x.size() == y.size() && x.size() >= 2, "slope needs two points");
  double mx = 0;
  double my = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mx += x[i];
    my += y[i];
  }
  mx /= static_cast<double>(x.size());
  my /= static_cast<double>(y.size());
  double sxy = 0;
  double sxx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sxy += (x[i] - mx) * (y[i] - my);
    sxx += (x[i] - mx) * (x[i] - mx);
  }
  expect(sxx > 0, "slope needs two different x");
  return sxy / sxx;
}

}  // namespace kbh
