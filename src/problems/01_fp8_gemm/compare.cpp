// The bounds, and where they come from. An honest kernel multiplies e4m3 exactly and accumulates in fp32 or in what
// Hopper's tensor cores call fp32: products and sum are aligned to the largest of 33 and cut towards zero below 13 bits
// (measured on an H200: out(-x) = -out(x) bit for bit). Relative Frobenius errors F measured there against fp64:
//
//   K                                       512     2048    4096    8192
//   nominal, promoted (to fp32 every 128)   .00166 at every K: the rounding of the output to bf16, 0.425 * 2^-8
//   nominal, fast                           .00169  .00185  .00208  .00258
//   one sign, promoted                      .0020 to .0023
//   one sign, fast                          .0060   .0340   .0717   .138: what is cut always has the same sign
//
// Laws: nominal F^2 = .0017^2 + (.0013 (K/4096)^.75)^2; one sign F = .072 K/4096.
#include "problem/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <kbh/numbers.hpp>

#include "problems/01_fp8_gemm/fp8_gemm.hpp"

namespace kbh::fp8_gemm {
namespace {

// Two roundings to bf16 (before and after the scale, as upstream does) move an element by 2 * 2^-8 of itself at most.
constexpr double kTwoRoundings = 0x1p-7;
// Errors beyond that have a deviation of .0013 (K/4096)^.75 scales (the law's second term), and a long tail: in a model
// of that accumulator ten times fewer lie above each further deviation (524288 outputs at K = 4096: 1419, 131, 15, 1, 0
// above 1 to 5; 262144 at 8192: 1058, 93, 14, 3, 0). A grade looks at 120 outputs of 4096 x 14336, 7e9 elements: one
// above 9 deviations must be expected. 14 are allowed; short sums, of few large steps, get 16 and more.
constexpr double kElement = .018;
constexpr double kLeastElement = .012;
// Largest F of a single rounding is 2^-8 = .0039: no honest tensor, however small, gets there.
constexpr double kLeastFrobenius = .0045;
// Fewer outputs than this may all be small by chance, and then F says nothing; the elements' own bound remains.
constexpr std::int64_t kFewestForFrobenius = 256;
// Promoted stays below half of it at every K, fast above it from K = 512 on.
constexpr double kPromoted = .005;
constexpr std::int64_t kLeastKToTell = 512;

double one_sign_law(std::int64_t k) { return .072 * static_cast<double>(k) / 4096; }

double frobenius_over(const Sizes& size, double bound) { return size.m * size.n < kFewestForFrobenius ? 0 : bound; }

double relative_error(std::span<const std::uint16_t> out, std::span<const double> expected) {
  double error = 0;
  double square = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double d = static_cast<double>(from_bf16(out[i])) - expected[i];
    error += d * d;
    square += expected[i] * expected[i];
  }
  return std::sqrt(error / square);
}

std::string accumulator_note(const Sizes& size, double error) {
  if (size.k < kLeastKToTell) return fmt::format("accumulator: relative error {:.2g}, too few terms to tell", error);
  return fmt::format("accumulator: {} (relative error {:.2g} on data of one sign; promoted: at most {})",
                     error > kPromoted ? "fast" : "promoted", error, kPromoted);
}

}  // namespace

Bounds zero_mean_bounds(const Sizes& size) {
  const auto k = static_cast<double>(size.k);
  const double law = std::hypot(.0017, .0013 * std::pow(k / 4096, .75));
  return {.a = std::max(kLeastElement, kElement * std::pow(k / 4096, .75)),
          .r = kTwoRoundings,
          .frobenius = frobenius_over(size, std::max(kLeastFrobenius, 2 * law))};
}

Bounds one_sign_bounds(const Sizes& size) {
  const double law = one_sign_law(size.k);
  // Twice the law over the tensor, and three times for one element: rows differ by some percent in what is cut.
  return {.a = kElement, .r = kTwoRoundings + 3 * law, .frobenius = frobenius_over(size, 2 * std::hypot(.0023, law))};
}

Comparison compare(const Shape& shape, const Case& of, std::span<const ConstTensorView>, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  const Sizes size(shape);
  const bool one_sign = of.name == kOneSign;
  OutputRule rule{.scale = expected.scales[0], .group_size = 0, .group_of = {}, .words = {}};
  Bounds bounds = of.bounds;
  if (!bounds.exact) {
    bounds = one_sign ? one_sign_bounds(size) : zero_mean_bounds(size);
    if (of.bounds.frobenius == 0) bounds.frobenius = 0;
    rule.words = fmt::format("at most {:.3g} |x_m| |w_n| s_n / sqrt(K) + {:.3g} |ref| for an element: bf16 output, {}",
                             bounds.a, bounds.r,
                             one_sign ? "data of one sign, three times what a fast fp8 accumulator errs by"
                                      : "room for a fast fp8 accumulator");
  }
  Comparison comparison = compare_output(outputs[0], expected.outputs[0], bounds, rule);
  if (one_sign)
    comparison.note = accumulator_note(size, relative_error(outputs[0].as<std::uint16_t>(), expected.outputs[0]));
  return comparison;
}

}  // namespace kbh::fp8_gemm
