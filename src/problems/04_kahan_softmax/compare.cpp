#include "problem/compare.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/parallel.hpp"
#include "problems/04_kahan_softmax/softmax.hpp"

namespace kbh::softmax {
namespace {

constexpr double kInfinitelyFar = 1e9;  // of a sum that is no number; JSON has no infinity

/// The sum of each row of y (batch, vocab): fp64 is exact to 1e-13 here, whatever the order.
std::vector<double> row_sums(std::span<const float> y, const Sizes& size) {
  const auto vocab = static_cast<std::size_t>(size.vocab);
  std::vector<double> sums(static_cast<std::size_t>(size.batch));
  parallel_for(sums.size(), 1 + (std::size_t{1} << 16) / vocab, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      std::array<double, 8> lanes{};
      const std::span<const float> values = y.subspan(row * vocab, vocab);
      std::size_t i = 0;
      for (; i + lanes.size() <= vocab; i += lanes.size())
        for (std::size_t l = 0; l < lanes.size(); ++l) lanes[l] += static_cast<double>(values[i + l]);
      for (; i < vocab; ++i) lanes[0] += static_cast<double>(values[i]);
      for (const double lane : lanes) sums[row] += lane;
    }
  });
  return sums;
}

Comparison compare_sums(std::span<const double> sums, double bound) {
  Comparison comparison;
  comparison.total = static_cast<std::int64_t>(sums.size());
  std::size_t worst_row = 0;
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const double error = std::abs(sums[row] - 1);
    const double ratio = std::isfinite(error) ? std::min(error / bound, kInfinitelyFar) : kInfinitelyFar;
    if (ratio > 1) ++comparison.bad;
    if (ratio <= comparison.worst) continue;
    comparison.worst = ratio;
    worst_row = row;
  }
  comparison.pass = comparison.bad == 0;
  if (comparison.pass) return comparison;
  comparison.mismatch = {"y",
                         {static_cast<std::int64_t>(worst_row)},
                         fmt::format("elements that sum to 1 within {:.3g}", bound),
                         fmt::format("1 {} {:.3g}", sums[worst_row] < 1 ? "-" : "+", std::abs(sums[worst_row] - 1)),
                         "the elements of a row, added in fp64, sum to 1: where the true sum of exponentials is a "
                         "power of two within 2^-24, "
                         "elsewhere within 4e-7; a plain fp32 sum loses more, whatever its order"};
  return comparison;
}

}  // namespace

Comparison compare(const Shape& shape, const Case& c, std::span<const ConstTensorView>, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  Bounds of_elements = c.bounds;
  of_elements.group = 0;  // the sums' (below)
  const OutputRule rule{.scale = expected.scales[0],
                        .words = "|y - ref| <= 2^-22 * (4 + (m - x)) * ref + 2^-126, m the row's largest logit"};
  const Comparison comparisons[] = {
      compare_output(outputs[0], expected.outputs[0], of_elements, rule),
      compare_sums(row_sums(outputs[0].as<float>(), Sizes(shape)), c.bounds.group),
  };
  return combined(comparisons);
}

}  // namespace kbh::softmax
