#include "problem/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <kbh/numbers.hpp>

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace kbh {
namespace {

/// A miss where no error is allowed, or a NaN, is infinitely far from its bound; a large number, because JSON has no
/// infinity.
constexpr double kExactMiss = 1e9;
constexpr std::size_t kGrain = std::size_t{1} << 15;

double value_at(const ConstTensorView& view, std::size_t i) {
  switch (view.spec->dtype) {
    case DType::f32:
      return static_cast<double>(view.as<float>()[i]);
    case DType::bf16:
      return static_cast<double>(from_bf16(view.as<std::uint16_t>()[i]));
    case DType::f16:
      return static_cast<double>(from_f16(view.as<std::uint16_t>()[i]));
    default:
      expect(false, "compare_output takes fp32, fp16 and bf16");
      return 0;
  }
}

/// The oracle's value rounded once to the output's dtype. A double goes to bf16 by way of a float that keeps what
/// decides (round to odd), so that it is rounded once.
double rounded(double value, DType dtype) {
  auto narrow = static_cast<float>(value);
  if (dtype == DType::f32 || !std::isfinite(narrow)) return static_cast<double>(narrow);
  if (const auto back = static_cast<double>(narrow); back != value) {
    if (std::abs(back) > std::abs(value)) narrow = std::nextafter(narrow, 0.0f);
    narrow = float_of_bits(bits_of(narrow) | 1u);
  }
  return static_cast<double>(dtype == DType::bf16 ? from_bf16(to_bf16(narrow)) : from_f16(to_f16(narrow)));
}

/// error / bound with the meaning of "passes at most 1"; NaN and infinity fail.
double ratio(double error, double bound) {
  if (error == 0) return 0;
  if (!std::isfinite(error)) return kExactMiss;
  return bound > 0 ? std::min(error / bound, kExactMiss) : kExactMiss;
}

/// Errors of a stretch of elements. Stretches are of a fixed size, so that sums do not depend on the number of threads.
struct Stretch {
  double worst = 0;
  std::size_t worst_at = 0;
  std::int64_t bad = 0;
  double error_squares = 0;
  double squares = 0;
};

class Comparer {
 public:
  Comparer(const ConstTensorView& output, std::span<const double> expected, const Bounds& bounds,
           const OutputRule& rule)
      : output_(output), expected_(expected), bounds_(bounds), rule_(rule) {
    expect(static_cast<std::int64_t>(expected.size()) == output.spec->elements(), "one expected value per element");
    expect(bounds.a == 0 || rule.scale.size() == expected.size(), "one scale per element");
  }

  Comparison run() {
    stretches_.resize((expected_.size() + kGrain - 1) / kGrain);
    parallel_for(stretches_.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t s = begin; s < end; ++s) stretches_[s] = look_at(s);
    });
    Comparison comparison;
    comparison.total = static_cast<std::int64_t>(expected_.size());
    Stretch all;
    for (const Stretch& s : stretches_) {
      if (s.worst > all.worst) {
        all.worst = s.worst;
        all.worst_at = s.worst_at;
      }
      comparison.bad += s.bad;
      all.error_squares += s.error_squares;
      all.squares += s.squares;
    }
    comparison.worst = all.worst;
    if (comparison.bad > 0) comparison.mismatch = element_mismatch(all.worst_at);
    if (!bounds_.exact) {
      if (bounds_.frobenius > 0) check_tensor(all, comparison);
      if (bounds_.group > 0) check_groups(comparison);
    }
    comparison.pass = !comparison.mismatch;
    return comparison;
  }

 private:
  [[nodiscard]] double wanted(std::size_t i) const {
    return bounds_.exact ? rounded(expected_[i], output_.spec->dtype) : expected_[i];
  }

  [[nodiscard]] double bound_at(std::size_t i) const {
    if (bounds_.exact) return 0;
    return (bounds_.a > 0 ? bounds_.a * rule_.scale[i] : 0) + bounds_.r * std::abs(expected_[i]);
  }

  [[nodiscard]] double error_at(std::size_t i) const {
    const double ref = wanted(i);
    const double out = value_at(output_, i);
    if (out == ref || (std::isnan(out) && std::isnan(ref))) return 0;
    return std::abs(out - ref);  // infinite or NaN where only one of them is
  }

  [[nodiscard]] Stretch look_at(std::size_t number) const {
    Stretch s;
    const std::size_t end = std::min(expected_.size(), (number + 1) * kGrain);
    for (std::size_t i = number * kGrain; i < end; ++i) {
      const double error = error_at(i);
      const double r = ratio(error, bound_at(i));
      if (r > 1) ++s.bad;
      if (r > s.worst) {
        s.worst = r;
        s.worst_at = i;
      }
      if (std::isfinite(expected_[i])) {
        s.error_squares += error * error;
        s.squares += expected_[i] * expected_[i];
      }
    }
    return s;
  }

  [[nodiscard]] std::vector<std::int64_t> place_of(std::size_t i) const {
    std::vector<std::int64_t> place(output_.spec->dims.size());
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t d = place.size(); d-- > 0;) {
      place[d] = rest % output_.spec->dims[d];
      rest /= output_.spec->dims[d];
    }
    return place;
  }

  [[nodiscard]] Mismatch element_mismatch(std::size_t i) const {
    const std::string limit = bounds_.exact ? "must be equal: these data are exact in every honest accumulator"
                                            : fmt::format("error {:.3g}, at most {:.3g}", error_at(i), bound_at(i));
    return {output_.spec->name, place_of(i), fmt::format("{:.9g}", wanted(i)),
            fmt::format("{:.9g}", value_at(output_, i)),
            rule_.words.empty() ? limit : fmt::format("{} ({})", limit, rule_.words)};
  }

  void check_tensor(const Stretch& all, Comparison& comparison) {
    const double error = relative(all.error_squares, all.squares);
    comparison.worst = std::max(comparison.worst, ratio(error, bounds_.frobenius));
    if (error <= bounds_.frobenius || comparison.mismatch) return;
    comparison.bad = comparison.total;
    comparison.mismatch = whole_mismatch("over the whole tensor", {}, error, bounds_.frobenius);
  }

  void check_groups(Comparison& comparison) {
    const bool listed = !rule_.group_of.empty();
    expect(listed ? rule_.group_of.size() == expected_.size() : rule_.group_size > 0, "the groups are given");
    const auto group = [&](std::size_t i) {
      return listed ? static_cast<std::size_t>(rule_.group_of[i]) : i / static_cast<std::size_t>(rule_.group_size);
    };
    std::size_t count = 0;
    for (std::size_t i = 0; listed && i < expected_.size(); ++i) count = std::max(count, group(i) + 1);
    if (!listed) count = group(expected_.size() - 1) + 1;
    std::vector<double> errors(count);
    std::vector<double> squares(count);
    std::vector<std::size_t> first(count, expected_.size());
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (!std::isfinite(expected_[i])) continue;
      const double error = error_at(i);
      errors[group(i)] += error * error;
      squares[group(i)] += expected_[i] * expected_[i];
      first[group(i)] = std::min(first[group(i)], i);
    }
    for (std::size_t g = 0; g < count; ++g) {
      const double error = relative(errors[g], squares[g]);
      comparison.worst = std::max(comparison.worst, ratio(error, bounds_.group));
      if (error <= bounds_.group || comparison.mismatch) continue;
      comparison.bad = listed ? 1 : rule_.group_size;
      comparison.mismatch =
          whole_mismatch("over the row or chunk that begins here", place_of(first[g]), error, bounds_.group);
    }
  }

  [[nodiscard]] static double relative(double error_squares, double squares) {
    if (error_squares == 0) return 0;
    return squares > 0 ? std::sqrt(error_squares / squares) : kExactMiss;
  }

  [[nodiscard]] Mismatch whole_mismatch(std::string_view where, std::vector<std::int64_t> place, double error,
                                        double bound) const {
    return {output_.spec->name, std::move(place), fmt::format("a relative Frobenius error of at most {:.3g}", bound),
            fmt::format("{:.3g}", error), fmt::format("|out - ref| / |ref| {} ({})", where, rule_.words)};
  }

  const ConstTensorView& output_;
  std::span<const double> expected_;
  const Bounds& bounds_;
  const OutputRule& rule_;
  std::vector<Stretch> stretches_;
};

}  // namespace

Comparison compare_output(const ConstTensorView& output, std::span<const double> expected, const Bounds& bounds,
                          const OutputRule& rule) {
  return Comparer(output, expected, bounds, rule).run();
}

Comparison combined(std::span<const Comparison> comparisons) {
  Comparison all;
  all.pass = true;
  for (const Comparison& c : comparisons) {
    all.pass &= c.pass;
    all.worst = std::max(all.worst, c.worst);
    all.bad += c.bad;
    all.total += c.total;
    if (!all.mismatch) all.mismatch = c.mismatch;
  }
  return all;
}

std::vector<double> rms_scales(std::span<const double> expected, std::int64_t width, std::int64_t block) {
  const auto rms = [&](std::size_t begin, std::size_t length) {
    double squares = 0;
    for (std::size_t i = begin; i < begin + length; ++i) squares += expected[i] * expected[i];
    return std::sqrt(squares / static_cast<double>(length));
  };
  const auto row_size = static_cast<std::size_t>(width);
  const auto block_size = static_cast<std::size_t>(block);
  expect(block_size % row_size == 0 && expected.size() % block_size == 0, "rows fill blocks, blocks fill the tensor");
  std::vector<double> scales(expected.size());
  for (std::size_t b = 0; b < expected.size(); b += block_size) {
    const double floor = rms(b, block_size) / 16;
    for (std::size_t row = b; row < b + block_size; row += row_size)
      std::fill_n(scales.begin() + static_cast<std::ptrdiff_t>(row), row_size, std::max(rms(row, row_size), floor));
  }
  return scales;
}

bool accepted_upstream(const UpstreamTolerance& tolerance, const Expected& expected,
                       std::span<const ConstTensorView> outputs) {
  for (std::size_t o = 0; o < outputs.size() && o < expected.outputs.size(); ++o) {
    const std::vector<double>& wanted = expected.outputs[o];
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double out = value_at(outputs[o], i);
      const double ref = rounded(wanted[i], outputs[o].spec->dtype);
      if (!std::isfinite(out) || !(std::abs(out - ref) <= tolerance.atol + tolerance.rtol * std::abs(out)))
        return false;
    }
  }
  return true;
}

}  // namespace kbh
