#include "problem/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include <kbh/numbers.hpp>

#include "base/error.hpp"
#include "base/every_width.hpp"
#include "base/parallel.hpp"

namespace kbh {
namespace {

/// A miss where no error is allowed, or a NaN, is infinitely far from its bound; a large number, because JSON has no
/// infinity.
constexpr double kExactMiss = 1e9;
constexpr std::size_t kGrain = std::size_t{1} << 15;
constexpr std::size_t kLanes = 16;  // of a sum: its order must not depend on the vectors' width

template <typename T, typename Widen>
void widen(const ConstTensorView& view, std::size_t begin, std::size_t n, double* to, Widen widened) {
  const T* from = view.as<T>().data() + begin;
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<double>(widened(from[i]));
}

/// Elements [begin, begin + n).
void load_values(const ConstTensorView& view, std::size_t begin, std::size_t n, double* to) {
  switch (view.spec->dtype) {
    case DType::f32:
      return widen<float>(view, begin, n, to, [](float value) { return value; });
    case DType::bf16:
      return widen<std::uint16_t>(view, begin, n, to, from_bf16);
    case DType::f16:
      return widen<std::uint16_t>(view, begin, n, to, from_f16);
    default:
      expect(false, "compare_output takes fp32, fp16 and bf16");
  }
}

double value_at(const ConstTensorView& view, std::size_t i) {
  double value = 0;
  load_values(view, i, 1, &value);
  return value;
}

/// The float on the near side of zero, with its last bit set where something was cut off: another rounding to fewer
/// bits is then as good as the only one.
float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  std::uint32_t bits = bits_of(nearest);
  const bool finite = (bits & 0x7fffffffu) < 0x7f800000u;
  bits -= finite & (std::abs(back) > std::abs(value)) ? 1u : 0u;
  bits |= finite & (back != value) ? 1u : 0u;
  return float_of_bits(bits);
}

template <typename Round>
KBH_EVERY_WIDTH void round_each(const double* from, std::size_t n, double* to, Round round) {
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<double>(round(from[i]));
}

/// The oracle's values rounded once to the output's dtype.
void round_values(std::span<const double> from, DType dtype, double* to) {
  switch (dtype) {
    case DType::bf16:
      return round_each(from.data(), from.size(), to, [](double v) { return from_bf16(to_bf16(rounded_to_odd(v))); });
    case DType::f16:
      return round_each(from.data(), from.size(), to, [](double v) { return from_f16(to_f16(rounded_to_odd(v))); });
    default:
      return round_each(from.data(), from.size(), to, [](double v) { return static_cast<float>(v); });
  }
}

double rounded(double value, DType dtype) {
  double result = 0;
  round_values({&value, 1}, dtype, &result);
  return result;
}

/// error / bound with the meaning of "passes at most 1"; NaN and infinity fail.
double ratio(double error, double bound) {
  if (error == 0) return 0;
  if (!std::isfinite(error)) return kExactMiss;
  return bound > 0 ? std::min(error / bound, kExactMiss) : kExactMiss;
}

/// Errors of a run of elements.
struct Sums {
  double worst = 0;
  std::size_t worst_at = 0;
  std::int64_t bad = 0;
  double error_squares = 0;
  double squares = 0;

  void add(const Sums& later) {
    if (later.worst > worst) {
      worst = later.worst;
      worst_at = later.worst_at;
    }
    bad += later.bad;
    error_squares += later.error_squares;
    squares += later.squares;
  }
};

double sum_of_squares(std::span<const double> values) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane] * values[i + lane];
  for (; i < values.size(); ++i) lanes[i % kLanes] += values[i] * values[i];
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

/// As many neighbouring elements as are looked at in vectors. Elements that are not there are 0 and right.
constexpr std::size_t kBlock = 128;
struct Block {
  double out[kBlock];
  double wanted[kBlock];
  double bound[kBlock];
  double error[kBlock];  // 0 where nothing finite is wanted
  double ratio[kBlock];

  void pad(std::size_t from) {
    for (double* values : {out, wanted, bound}) std::fill(values + from, values + kBlock, 0.0);
  }
};

/// Fills `error` and `ratio`, without branches; `worst_at` stays 0. What is wanted but not finite becomes 0.
KBH_EVERY_WIDTH Sums judge(Block& block) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double out = block.out[i];
    const double ref = block.wanted[i];
    const double bound = block.bound[i];
    const double difference = std::abs(out - ref);  // infinite or NaN where only one of them is
    double error = out == ref ? 0.0 : difference;
    error = (out != out) & (ref != ref) ? 0.0 : error;
    const double quotient = error / bound;
    double r = quotient < kExactMiss ? quotient : kExactMiss;
    r = error <= kLargest ? r : kExactMiss;
    r = bound > 0 ? r : kExactMiss;
    const bool finite = std::abs(ref) <= kLargest;
    block.ratio[i] = error == 0 ? 0.0 : r;
    block.error[i] = finite ? error : 0.0;
    block.wanted[i] = finite ? ref : 0.0;
  }
  double worst[kLanes] = {};
  double bad[kLanes] = {};
  double error_squares[kLanes] = {};
  double squares[kLanes] = {};
  for (std::size_t i = 0; i < kBlock; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double r = block.ratio[i + lane];
      worst[lane] = r > worst[lane] ? r : worst[lane];
      bad[lane] += r > 1 ? 1.0 : 0.0;
      error_squares[lane] += block.error[i + lane] * block.error[i + lane];
      squares[lane] += block.wanted[i + lane] * block.wanted[i + lane];
    }
  Sums sums;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums.worst = std::max(sums.worst, worst[lane]);
    sums.bad += static_cast<std::int64_t>(bad[lane]);
    sums.error_squares += error_squares[lane];
    sums.squares += squares[lane];
  }
  return sums;
}

/// `wanted`: of elements from `first` on, at most kBlock.
bool block_accepted_upstream(const UpstreamTolerance& tolerance, std::span<const double> wanted,
                             const ConstTensorView& output, std::size_t first) {
  double out[kBlock];
  double ref[kBlock];
  load_values(output, first, wanted.size(), out);
  round_values(wanted, output.spec->dtype, ref);
  int refused = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double size = std::abs(out[i]);
    const bool near = std::abs(out[i] - ref[i]) <= tolerance.atol + tolerance.rtol * size;
    refused += near & (size <= std::numeric_limits<double>::max()) ? 0 : 1;
  }
  return refused == 0;
}

class Comparer {
 public:
  Comparer(const ConstTensorView& output, std::span<const double> expected, const Bounds& bounds,
           const OutputRule& rule)
      : output_(output),
        expected_(expected),
        bounds_(bounds),
        rule_(rule),
        scaled_(!bounds.exact && bounds.a > 0),
        grouped_(!bounds.exact && bounds.group > 0) {
    expect(static_cast<std::int64_t>(expected.size()) == output.spec->elements(), "one expected value per element");
    if (bounds.a != 0 && !expected.empty()) {
      expect(!rule.scale.empty() && expected.size() % rule.scale.size() == 0, "scales are spread evenly");
      per_scale_ = expected.size() / rule.scale.size();
    }
    if (!grouped_) return;
    expect(rule.group_size > 0, "the groups are given");
    row_ = static_cast<std::size_t>(rule.group_size);
    rows_.resize((expected.size() + row_ - 1) / row_);
    expect(rule.group_of.empty() || rule.group_of.size() == rows_.size(), "one group per row");
  }

  Comparison run() {
    // Of a fixed size, so that sums do not depend on the number of threads; of whole rows where those are summed.
    const std::size_t length = grouped_ ? std::max<std::size_t>(1, kGrain / row_) * row_ : kGrain;
    std::vector<Sums> stretches((expected_.size() + length - 1) / length);
    parallel_for(stretches.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t s = begin; s < end; ++s)
        stretches[s] = look_at(s * length, std::min(expected_.size(), (s + 1) * length));
    });
    Comparison comparison;
    comparison.total = static_cast<std::int64_t>(expected_.size());
    Sums all;
    for (const Sums& s : stretches) all.add(s);
    comparison.bad = all.bad;
    comparison.worst = all.worst;
    if (comparison.bad > 0) comparison.mismatch = element_mismatch(all.worst_at);
    if (!bounds_.exact && bounds_.frobenius > 0) check_tensor(all, comparison);
    if (grouped_) check_groups(comparison);
    comparison.pass = !comparison.mismatch;
    return comparison;
  }

 private:
  [[nodiscard]] double wanted(std::size_t i) const {
    return bounds_.exact ? rounded(expected_[i], output_.spec->dtype) : expected_[i];
  }

  [[nodiscard]] double bound_at(std::size_t i) const {
    if (bounds_.exact) return 0;
    return (scaled_ ? bounds_.a * rule_.scale[i / per_scale_] : 0) + bounds_.r * std::abs(expected_[i]);
  }

  [[nodiscard]] double error_at(std::size_t i) const {
    const double ref = wanted(i);
    const double out = value_at(output_, i);
    if (out == ref || (std::isnan(out) && std::isnan(ref))) return 0;
    return std::abs(out - ref);
  }

  /// Elements [begin, end), at most kBlock of them.
  void load(std::size_t begin, std::size_t end, Block& block) const {
    const std::size_t n = end - begin;
    if (n < kBlock) block.pad(n);
    load_values(output_, begin, n, block.out);
    if (bounds_.exact) {
      round_values(expected_.subspan(begin, n), output_.spec->dtype, block.wanted);
      std::fill_n(block.bound, n, 0.0);
      return;
    }
    std::copy_n(expected_.data() + begin, n, block.wanted);
    for (std::size_t i = 0; i < n; ++i) block.bound[i] = bounds_.r * std::abs(block.wanted[i]);
    if (scaled_) add_scales(begin, n, block.bound);
  }

  void add_scales(std::size_t begin, std::size_t n, double* bound) const {
    if (per_scale_ == 1) {
      const double* scale = rule_.scale.data() + begin;
      for (std::size_t i = 0; i < n; ++i) bound[i] += bounds_.a * scale[i];
      return;
    }
    for (std::size_t i = 0; i < n;) {
      const std::size_t row = (begin + i) / per_scale_;
      const std::size_t end = std::min(n, (row + 1) * per_scale_ - begin);
      const double allowed = bounds_.a * rule_.scale[row];
      for (; i < end; ++i) bound[i] += allowed;
    }
  }

  [[nodiscard]] Sums look_at(std::size_t begin, std::size_t end) {
    Sums all;
    for (std::size_t next = begin; begin < end; begin = next) {
      next = std::min(end, begin + (grouped_ ? std::min(kBlock, row_ - begin % row_) : kBlock));
      Block block;
      load(begin, next, block);
      Sums sums = judge(block);
      if (sums.worst > all.worst)
        sums.worst_at =
            begin + static_cast<std::size_t>(std::find(block.ratio, block.ratio + kBlock, sums.worst) - block.ratio);
      all.add(sums);
      if (grouped_) rows_[begin / row_].add(sums);
    }
    return all;
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

  void check_tensor(const Sums& all, Comparison& comparison) {
    const double error = relative(all.error_squares, all.squares);
    comparison.worst = std::max(comparison.worst, ratio(error, bounds_.frobenius));
    if (error <= bounds_.frobenius || comparison.mismatch) return;
    comparison.bad = comparison.total;
    comparison.mismatch = whole_mismatch("over the whole tensor", {}, error, bounds_.frobenius);
  }

  struct Group {
    Sums sums;
    std::size_t rows = 0;
    std::size_t first = 0;  // element
  };

  [[nodiscard]] std::vector<Group> groups() const {
    std::vector<Group> all;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const std::size_t number = rule_.group_of.empty() ? row : static_cast<std::size_t>(rule_.group_of[row]);
      if (number >= all.size()) all.resize(number + 1);
      Group& group = all[number];
      if (group.rows++ == 0) group.first = row * row_;
      group.sums.add(rows_[row]);
    }
    return all;
  }

  void check_groups(Comparison& comparison) {
    for (const Group& group : groups()) {
      const double error = relative(group.sums.error_squares, group.sums.squares);
      comparison.worst = std::max(comparison.worst, ratio(error, bounds_.group));
      if (error <= bounds_.group || comparison.mismatch) continue;
      comparison.bad = static_cast<std::int64_t>(group.rows * row_);
      comparison.mismatch =
          whole_mismatch("over the row or chunk that begins here", place_of(group.first), error, bounds_.group);
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
  bool scaled_;
  bool grouped_;
  std::size_t per_scale_ = 1;  // elements
  std::size_t row_ = 1;        // elements of a row of a group
  std::vector<Sums> rows_;     // where there are groups
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
  const auto row_size = static_cast<std::size_t>(width);
  const auto block_size = static_cast<std::size_t>(block);
  expect(block_size % row_size == 0 && expected.size() % block_size == 0, "rows fill blocks, blocks fill the tensor");
  std::vector<double> scales(expected.size() / row_size);
  parallel_for(scales.size(), kGrain / row_size + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      scales[row] = sum_of_squares(expected.subspan(row * row_size, row_size));
  });
  const std::size_t rows = block_size / row_size;
  for (auto row = scales.begin(); row != scales.end(); row += static_cast<std::ptrdiff_t>(rows)) {
    const std::span<double> of_block(row, rows);
    const double sum = std::accumulate(of_block.begin(), of_block.end(), 0.0);
    const double floor = std::sqrt(sum / static_cast<double>(block_size)) / 16;
    for (double& squares : of_block) squares = std::max(std::sqrt(squares / static_cast<double>(row_size)), floor);
  }
  return scales;
}

bool accepted_upstream(const UpstreamTolerance& tolerance, const Expected& expected,
                       std::span<const ConstTensorView> outputs) {
  for (std::size_t o = 0; o < outputs.size() && o < expected.outputs.size(); ++o) {
    const std::vector<double>& wanted = expected.outputs[o];
    std::atomic<bool> accepted = true;
    parallel_for(wanted.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t next = begin; begin < end && accepted.load(std::memory_order_relaxed); begin = next) {
        next = std::min(end, begin + kBlock);
        if (!block_accepted_upstream(tolerance, std::span(wanted).subspan(begin, next - begin), outputs[o], begin))
          accepted = false;
      }
    });
    if (!accepted) return false;
  }
  return true;
}

}  // namespace kbh
