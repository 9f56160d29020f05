// Wrong kernels for 07_w4a16_gemm that look right. Each is written once, here: lint runs them in its own process, and
// NAME.cpp beside this file makes one of them a submission.
#pragma once

#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::w4a16::wrong {

enum class Mutant {
  zeros,
  constant,
  copy_input,
  permuted_rows,
  stale,
  kept_weights,
  sampled_memo,
  one_wrong,
  zero_point_ignored,
  zero_point_off_by_one,
  zero_points_clamped,
  nibbles_swapped,
  highest_level_clamped,
  group_off_by_one,
  last_k_dropped,
  last_group_dropped,
  odd_group_dropped,
  ragged_columns_dropped,
  ragged_rows_dropped,
  folded_multiply_add,
  rounded_zero_products,
  rounded_row_sums,
  scales_in_fixed_point,
  scales_in_8_bits,
  int8_activations,
  small_activations_flushed,
  activations_clamped,
  range_from_front,
  quiet_rows_skipped,
  padding_guessed,
  quiet_columns_skipped,
  quiet_groups_skipped,
  scale_range_from_first_group,
  fp16_accumulation,
  fp16_output,
  bf16_accumulation,
  bf16_split_k,
  fixed_point_sums,
};

constexpr int64_t kGroup = 128;

/// One call.
struct Call {
  int64_t m, n, k;
  const uint8_t* levels;
  const uint16_t* scales;
  const uint16_t* zeros;
  const uint16_t* x;
  uint16_t* out;

  [[nodiscard]] float level(int64_t row, int64_t j) const {
    const uint8_t pair = levels[row / 2 * n + j];
    return static_cast<float>(row % 2 == 0 ? pair & 15 : pair >> 4);
  }
  [[nodiscard]] float scale(int64_t group, int64_t j) const { return from_bf16(scales[group * n + j]); }
  [[nodiscard]] float zero(int64_t group, int64_t j) const { return from_bf16(zeros[group * n + j]); }
  [[nodiscard]] int64_t elements() const { return m * n; }
};

inline float bf16(float value) { return from_bf16(to_bf16(value)); }
inline float f16(float value) { return from_f16(to_f16(value)); }

// ---- a product in the right order, with one thing replaced

struct RightWeight {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    return (c.level(k, j) - c.zero(k / kGroup, j)) * c.scale(k / kGroup, j);
  }
};

struct RightActivation {
  float operator()(const Call& c, int64_t i, int64_t k) const { return from_bf16(c.x[i * c.k + k]); }
};

/// fp32 sums, left alone.
struct RightSum {
  void operator()(const Call&, int64_t, float*, int64_t) const {}
  void finish(float*, int64_t) const {}
};

/// The sums (M, N) of activation(c, i, k) weight(c, k, j). After each k, sum(c, k, sums, count) may round them.
template <typename Weight, typename Activation = RightActivation, typename Sum = RightSum>
std::vector<float> product(const Call& c, Weight weight, Activation activation = {}, Sum sum = {}) {
  constexpr int64_t kBlock = 256;
  std::vector<float> x(static_cast<size_t>(c.m * c.k));
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t k = 0; k < c.k; ++k) x[static_cast<size_t>(i * c.k + k)] = activation(c, i, k);
  std::vector<float> result(static_cast<size_t>(c.elements()));
  std::vector<float> sums(static_cast<size_t>(c.m * kBlock));
  float row[kBlock];
  for (int64_t first = 0; first < c.n; first += kBlock) {
    const int64_t columns = std::min(kBlock, c.n - first);
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t k = 0; k < c.k; ++k) {
      for (int64_t j = 0; j < columns; ++j) row[j] = weight(c, k, first + j);
      for (int64_t i = 0; i < c.m; ++i) {
        float* to = sums.data() + i * kBlock;
        const float factor = x[static_cast<size_t>(i * c.k + k)];
        for (int64_t j = 0; j < columns; ++j) to[j] += factor * row[j];
      }
      sum(c, k, sums.data(), c.m * kBlock);
    }
    sum.finish(sums.data(), c.m * kBlock);
    for (int64_t i = 0; i < c.m; ++i) std::copy_n(sums.data() + i * kBlock, columns, result.data() + i * c.n + first);
  }
  return result;
}

inline void write(const Call& c, const std::vector<float>& sums) {
  for (int64_t i = 0; i < c.elements(); ++i) c.out[i] = to_bf16(sums[static_cast<size_t>(i)]);
}

template <typename Weight = RightWeight, typename Activation = RightActivation, typename Sum = RightSum>
void multiply(const Call& c, Weight weight = {}, Activation activation = {}, Sum sum = {}) {
  write(c, product(c, weight, activation, sum));
}

// ---- blunt

inline void fill(const Call& c, uint16_t value) { std::fill_n(c.out, c.elements(), value); }

inline void copy_input(const Call& c) {
  for (int64_t i = 0; i < c.elements(); ++i) c.out[i] = c.x[i % (c.m * c.k)];
}

inline void permuted_rows(const Call& c) {
  multiply(c);
  std::rotate(c.out, c.out + c.n, c.out + c.elements());
}

/// The answer to the call before, when it has the same size.
inline void stale(const Call& c) {
  static std::vector<uint16_t> former;
  static int64_t former_k = 0;
  multiply(c);
  std::vector<uint16_t> right(c.out, c.out + c.elements());
  if (former.size() == right.size() && former_k == c.k) std::copy(former.begin(), former.end(), c.out);
  former = std::move(right);
  former_k = c.k;
}

/// Weights are read in the first call of each size and kept.
inline void kept_weights(Call c) {
  static std::vector<uint8_t> levels;
  static std::vector<uint16_t> scales, zeros;
  static int64_t n = 0, k = 0;
  const int64_t groups = c.k / kGroup;
  if (n != c.n || k != c.k) {
    levels.assign(c.levels, c.levels + c.k / 2 * c.n);
    scales.assign(c.scales, c.scales + groups * c.n);
    zeros.assign(c.zeros, c.zeros + groups * c.n);
    n = c.n;
    k = c.k;
  }
  c.levels = levels.data();
  c.scales = scales.data();
  c.zeros = zeros.data();
  multiply(c);
}

/// Takes the call for a repetition when size, first scale and first activation are what they were.
inline void sampled_memo(const Call& c) {
  struct Sample {
    int64_t m, n, k;
    uint16_t scale, x;
    bool operator==(const Sample&) const = default;
  };
  static Sample known{};
  static std::vector<uint16_t> answer;
  const Sample now{c.m, c.n, c.k, c.scales[0], c.x[0]};
  if (now == known) {
    std::copy(answer.begin(), answer.end(), c.out);
    return;
  }
  multiply(c);
  known = now;
  answer.assign(c.out, c.out + c.elements());
}

/// One element, chosen by the data, is off by four times its tolerance.
inline void one_wrong(const Call& c) {
  multiply(c);
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int64_t i = 0; i < c.m * c.k; ++i) hash = (hash ^ c.x[i]) * 0x100000001b3u;
  for (int64_t j = 0; j < c.n; ++j) hash = (hash ^ c.scales[j]) * 0x100000001b3u;
  const auto place = static_cast<int64_t>((hash >> 20) % static_cast<uint64_t>(c.elements()));
  double x2 = 0, w2 = 0;
  for (int64_t k = 0; k < c.k; ++k) {
    const double x = static_cast<double>(RightActivation{}(c, place / c.n, k));
    const double w = static_cast<double>(RightWeight{}(c, k, place % c.n));
    x2 += x * x;
    w2 += w * w;
  }
  const double value = static_cast<double>(from_bf16(c.out[place]));
  const double tolerance = 0.016 * std::sqrt(x2 * w2 / static_cast<double>(c.k)) + std::abs(value) / 128;
  c.out[place] = to_bf16(static_cast<float>(value + 4 * tolerance));
}

// ---- weights

struct ZeroPointIgnored {
  float operator()(const Call& c, int64_t k, int64_t j) const { return c.level(k, j) * c.scale(k / kGroup, j); }
};

/// The convention of another format, which stores zero - 1.
struct ZeroPointOffByOne {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    return (c.level(k, j) - c.zero(k / kGroup, j) - 1) * c.scale(k / kGroup, j);
  }
};

/// Quantised normal weights have zero points in the middle.
struct ZeroPointsClamped {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    return (c.level(k, j) - std::clamp(c.zero(k / kGroup, j), 2.0f, 13.0f)) * c.scale(k / kGroup, j);
  }
};

struct NibblesSwapped {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    return (c.level(k ^ 1, j) - c.zero(k / kGroup, j)) * c.scale(k / kGroup, j);
  }
};

struct HighestLevelClamped {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    return (std::min(c.level(k, j), 14.0f) - c.zero(k / kGroup, j)) * c.scale(k / kGroup, j);
  }
};

/// Scale and zero point of the next group; of the last one where there is no next.
struct GroupOffByOne {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    const int64_t group = std::min(k / kGroup + 1, c.k / kGroup - 1);
    return (c.level(k, j) - c.zero(group, j)) * c.scale(group, j);
  }
};

/// Ends at K - `dropped`.
struct Shortened {
  int64_t dropped;
  float operator()(const Call& c, int64_t k, int64_t j) const { return k < c.k - dropped ? RightWeight{}(c, k, j) : 0; }
};

/// One bf16 multiply-add, (128 + q) s - (128 + z) s, as fp16 kernels do with 1024 + q: bf16 has three bits less.
struct FoldedMultiplyAdd {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    const float s = c.scale(k / kGroup, j);
    return bf16((128 + c.level(k, j)) * s - bf16((128 + c.zero(k / kGroup, j)) * s));
  }
};

/// (q - 8) s - (z - 8) s, the latter prepared in bf16.
struct RoundedZeroProducts {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    const float s = c.scale(k / kGroup, j);
    return (c.level(k, j) - 8) * s - bf16((c.zero(k / kGroup, j) - 8) * s);
  }
};

/// Scales as multiples of 2^-19 below 2^-3.
struct ScalesInFixedPoint {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    const float s = std::min(std::round(c.scale(k / kGroup, j) * 0x1p19f), 65535.0f) * 0x1p-19f;
    return (c.level(k, j) - c.zero(k / kGroup, j)) * s;
  }
};

/// Scales in eight bits of the largest of all.
inline void scales_in_8_bits(const Call& c) {
  float step = 1e-30f;
  for (int64_t i = 0; i < c.k / kGroup * c.n; ++i) step = std::max(step, from_bf16(c.scales[i]) / 255);
  multiply(c, [step](const Call& call, int64_t k, int64_t j) {
    const float s = std::nearbyint(call.scale(k / kGroup, j) / step) * step;
    return (call.level(k, j) - call.zero(k / kGroup, j)) * s;
  });
}

/// Columns whose largest scale is below 1/16 of the largest of all are taken for 0.
struct QuietColumnsSkipped {
  std::vector<bool> quiet;
  explicit QuietColumnsSkipped(const Call& c) {
    std::vector<float> largest(static_cast<size_t>(c.n));
    for (int64_t i = 0; i < c.k / kGroup * c.n; ++i)
      largest[static_cast<size_t>(i % c.n)] = std::max(largest[static_cast<size_t>(i % c.n)], from_bf16(c.scales[i]));
    const float limit = *std::max_element(largest.begin(), largest.end()) / 16;
    for (const float scale : largest) quiet.push_back(scale < limit);
  }
};

inline void quiet_columns_skipped(const Call& c) {
  const QuietColumnsSkipped skip(c);
  multiply(c, [&](const Call& call, int64_t k, int64_t j) {
    return skip.quiet[static_cast<size_t>(j)] ? 0.0f : RightWeight{}(call, k, j);
  });
}

/// Scales below 1/16 of the largest of all are taken for 0.
inline void quiet_groups_skipped(const Call& c) {
  float largest = 0;
  for (int64_t i = 0; i < c.k / kGroup * c.n; ++i) largest = std::max(largest, from_bf16(c.scales[i]));
  multiply(c, [limit = largest / 16](const Call& call, int64_t k, int64_t j) {
    return call.scale(k / kGroup, j) < limit ? 0.0f : RightWeight{}(call, k, j);
  });
}

/// No scale is taken for larger than four times that of its column's first group.
struct ScaleRangeFromFirstGroup {
  float operator()(const Call& c, int64_t k, int64_t j) const {
    return (c.level(k, j) - c.zero(k / kGroup, j)) * std::min(c.scale(k / kGroup, j), 4 * c.scale(0, j));
  }
};

// ---- activations

inline float largest_magnitude(const uint16_t* x, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(from_bf16(x[i])));
  return largest;
}

/// Eight bits per row.
inline void int8_activations(const Call& c) {
  std::vector<float> step;
  for (int64_t i = 0; i < c.m; ++i) step.push_back(std::max(largest_magnitude(c.x + i * c.k, c.k) / 127, 1e-30f));
  multiply(c, RightWeight{}, [&](const Call& call, int64_t i, int64_t k) {
    const float s = step[static_cast<size_t>(i)];
    return std::nearbyint(RightActivation{}(call, i, k) / s) * s;
  });
}

struct SmallActivationsFlushed {
  float operator()(const Call& c, int64_t i, int64_t k) const {
    const float x = RightActivation{}(c, i, k);
    return std::abs(x) < 0x1p-10f ? 0 : x;
  }
};

struct ActivationsClamped {
  float operator()(const Call& c, int64_t i, int64_t k) const {
    return std::clamp(RightActivation{}(c, i, k), -8.0f, 8.0f);
  }
};

/// Fixed point over three times the largest of the front.
inline void range_from_front(const Call& c) {
  const float range = 3 * largest_magnitude(c.x, std::clamp<int64_t>(c.m * c.k / 4, 1, 1024));
  multiply(c, RightWeight{}, [&](const Call& call, int64_t i, int64_t k) {
    return std::clamp(RightActivation{}(call, i, k), -range, range);
  });
}

/// Rows below 1/16 of the largest are taken for 0.
inline void quiet_rows_skipped(const Call& c) {
  std::vector<float> largest;
  for (int64_t i = 0; i < c.m; ++i) largest.push_back(largest_magnitude(c.x + i * c.k, c.k));
  const float limit = *std::max_element(largest.begin(), largest.end()) / 16;
  multiply(c, RightWeight{}, [&](const Call& call, int64_t i, int64_t k) {
    return largest[static_cast<size_t>(i)] < limit ? 0.0f : RightActivation{}(call, i, k);
  });
}

/// A row of x that begins with a group of zeros is taken for padding.
inline void padding_guessed(const Call& c) {
  std::vector<bool> padding;
  for (int64_t i = 0; i < c.m; ++i) padding.push_back(largest_magnitude(c.x + i * c.k, kGroup) == 0);
  multiply(c, RightWeight{}, [&](const Call& call, int64_t i, int64_t k) {
    return padding[static_cast<size_t>(i)] ? 0.0f : RightActivation{}(call, i, k);
  });
}

// ---- sums

/// Sums are kept in a narrow type, rounded after every `every` terms, as a matrix instruction would.
template <float (*Round)(float)>
struct RoundedSums {
  int64_t every;
  void operator()(const Call&, int64_t k, float* sums, int64_t count) const {
    if (k % every != every - 1) return;
    for (int64_t i = 0; i < count; ++i) sums[i] = Round(sums[i]);
  }
  void finish(float*, int64_t) const {}
};

/// Four parts of K, each rounded to bf16 and added in bf16.
struct Bf16SplitK {
  std::vector<float> total;
  void operator()(const Call& c, int64_t k, float* sums, int64_t count) {
    const int64_t part = c.k / 4;
    if (k % part != part - 1) return;
    total.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      float& t = total[static_cast<size_t>(i)];
      t = bf16(t + bf16(sums[i]));
      sums[i] = 0;
    }
  }
  void finish(float* sums, int64_t) {
    std::copy(total.begin(), total.end(), sums);
    std::fill(total.begin(), total.end(), 0.0f);
  }
};

/// Sums in 32-bit fixed point, multiples of 2^-12 below 2^19.
inline float fixed_point(float value) {
  return std::clamp(std::nearbyint(value * 0x1p12f) * 0x1p-12f, -0x1p19f, 0x1p19f);
}

struct Fp16Output {
  void operator()(const Call&, int64_t, float*, int64_t) const {}
  void finish(float* sums, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) sums[i] = f16(sums[i]);
  }
};

/// s (sum of x (q - 8) - (z - 8) sum of x) with the sum of x over each group rounded to bf16: the right sum plus
/// (z - 8) s times what the rounding takes away.
inline void rounded_row_sums(const Call& c) {
  std::vector<float> sums = product(c, RightWeight{});
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t g = 0; g < c.k / kGroup; ++g) {
      float sum = 0;
      for (int64_t k = g * kGroup; k < (g + 1) * kGroup; ++k) sum += RightActivation{}(c, i, k);
      const float lost = sum - bf16(sum);
      for (int64_t j = 0; j < c.n; ++j)
        sums[static_cast<size_t>(i * c.n + j)] += (c.zero(g, j) - 8) * c.scale(g, j) * lost;
    }
  write(c, sums);
}

// ---- sizes that were not listed

/// Columns come in tiles of 64; what is left over is not written.
inline void ragged_columns_dropped(const Call& c) {
  multiply(c, [](const Call& call, int64_t k, int64_t j) {
    return j < call.n / 64 * 64 ? RightWeight{}(call, k, j) : 0.0f;
  });
}

/// Beyond 16 rows come in tiles of 16; what is left over is not written.
inline void ragged_rows_dropped(const Call& c) {
  multiply(c, RightWeight{}, [](const Call& call, int64_t i, int64_t k) {
    return call.m <= 16 || i < call.m / 16 * 16 ? RightActivation{}(call, i, k) : 0.0f;
  });
}

inline void run(Mutant mutant, const Call& c) {
  switch (mutant) {
    case Mutant::zeros:
      return fill(c, 0);
    case Mutant::constant:
      return fill(c, to_bf16(1));
    case Mutant::copy_input:
      return copy_input(c);
    case Mutant::permuted_rows:
      return permuted_rows(c);
    case Mutant::stale:
      return stale(c);
    case Mutant::kept_weights:
      return kept_weights(c);
    case Mutant::sampled_memo:
      return sampled_memo(c);
    case Mutant::one_wrong:
      return one_wrong(c);
    case Mutant::zero_point_ignored:
      return multiply(c, ZeroPointIgnored{});
    case Mutant::zero_point_off_by_one:
      return multiply(c, ZeroPointOffByOne{});
    case Mutant::zero_points_clamped:
      return multiply(c, ZeroPointsClamped{});
    case Mutant::nibbles_swapped:
      return multiply(c, NibblesSwapped{});
    case Mutant::highest_level_clamped:
      return multiply(c, HighestLevelClamped{});
    case Mutant::group_off_by_one:
      return multiply(c, GroupOffByOne{});
    case Mutant::last_k_dropped:
      return multiply(c, Shortened{1});
    case Mutant::last_group_dropped:
      return multiply(c, Shortened{kGroup});
    case Mutant::odd_group_dropped:
      return multiply(c, Shortened{c.k % (2 * kGroup)});
    case Mutant::ragged_columns_dropped:
      return ragged_columns_dropped(c);
    case Mutant::ragged_rows_dropped:
      return ragged_rows_dropped(c);
    case Mutant::folded_multiply_add:
      return multiply(c, FoldedMultiplyAdd{});
    case Mutant::rounded_zero_products:
      return multiply(c, RoundedZeroProducts{});
    case Mutant::rounded_row_sums:
      return rounded_row_sums(c);
    case Mutant::scales_in_fixed_point:
      return multiply(c, ScalesInFixedPoint{});
    case Mutant::scales_in_8_bits:
      return scales_in_8_bits(c);
    case Mutant::int8_activations:
      return int8_activations(c);
    case Mutant::small_activations_flushed:
      return multiply(c, RightWeight{}, SmallActivationsFlushed{});
    case Mutant::activations_clamped:
      return multiply(c, RightWeight{}, ActivationsClamped{});
    case Mutant::range_from_front:
      return range_from_front(c);
    case Mutant::quiet_rows_skipped:
      return quiet_rows_skipped(c);
    case Mutant::padding_guessed:
      return padding_guessed(c);
    case Mutant::quiet_columns_skipped:
      return quiet_columns_skipped(c);
    case Mutant::quiet_groups_skipped:
      return quiet_groups_skipped(c);
    case Mutant::scale_range_from_first_group:
      return multiply(c, ScaleRangeFromFirstGroup{});
    case Mutant::fp16_accumulation:
      return multiply(c, RightWeight{}, RightActivation{}, RoundedSums<f16>{16});
    case Mutant::fp16_output:
      return multiply(c, RightWeight{}, RightActivation{}, Fp16Output{});
    case Mutant::bf16_accumulation:
      return multiply(c, RightWeight{}, RightActivation{}, RoundedSums<bf16>{64});
    case Mutant::bf16_split_k:
      return multiply(c, RightWeight{}, RightActivation{}, Bf16SplitK{});
    case Mutant::fixed_point_sums:
      return multiply(c, RightWeight{}, RightActivation{}, RoundedSums<fixed_point>{64});
  }
}

/// state: w_q, scales, zeros; inputs: x; outputs: out.
inline void run(Mutant mutant, const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
  run(mutant, Call{.m = inputs[0].shape[0],
                   .n = outputs[0].shape[1],
                   .k = inputs[0].shape[1],
                   .levels = static_cast<const uint8_t*>(state[0].data),
                   .scales = static_cast<const uint16_t*>(state[1].data),
                   .zeros = static_cast<const uint16_t*>(state[2].data),
                   .x = static_cast<const uint16_t*>(inputs[0].data),
                   .out = static_cast<uint16_t*>(outputs[0].data)});
}

}  // namespace kbh::w4a16::wrong

#ifdef KBH_MUTANT
extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = const_cast<kbh_tensor*>(context->state);
  return 0;
}

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  kbh::w4a16::wrong::run(kbh::w4a16::wrong::Mutant::KBH_MUTANT, static_cast<const kbh_tensor*>(self), inputs, outputs);
  return 0;
}

extern "C" void kbh_destroy(void*) {}
#endif
