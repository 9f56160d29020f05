// Why the exact cases are exact. The weakest honest accumulator, Hopper's, adds 32 products and the sum so far after
// aligning them to the largest and cutting all below 13 bits under its leading one. Nothing is cut where everything is
// a multiple of one unit and below 2^14 units. Standard deviations of the sums, with 2^14 in terms of them:
//   ternary   unit 2^(p+q), 4/9 per term:                   K = 8192: 60;  272 sigma
//   integers  -7..7 both, 348 per term:                     K = 8192: 1690;  9.7 sigma
//   saturated unit 2^12, 49 each, 1/9 of the terms nonzero: K = 8192: 1480; 11 sigma
//   sparse    1/4 of -15..15 both, 400 per term:            K = 8192: 1810;  9 sigma
// Beyond K = 8192 the integers are smaller and the sparse ones sparser. Checked on an H200 with a library's kernels,
// fast and promoted, K = 4096, 4128 and 8192: no element of 262144 differs.
#include "problems/01_fp8_gemm/fills.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"

namespace kbh::fp8_gemm {
namespace {

constexpr std::int64_t kSixtyFourKiB = 65536;
constexpr std::int64_t kLongK = 8192;

std::uint64_t unsigned_of(std::int64_t n) { return static_cast<std::uint64_t>(n); }

/// One number per row or column, 2^low .. 2^high, uniform in the logarithm; both ends occur where there are two.
std::vector<float> spread(std::uint64_t stream, std::int64_t count, float low, float high) {
  Random random(stream);
  std::vector<float> factors(index(count));
  for (float& f : factors) f = random.log_uniform(low, high);
  if (count < 2) return factors;
  const std::int64_t first = random.below(count);
  const std::int64_t second = (first + 1 + random.below(count - 1)) % count;
  factors[index(first)] = std::ldexp(1.0f, static_cast<int>(low));
  factors[index(second)] = std::ldexp(1.0f, static_cast<int>(high));
  return factors;
}

std::vector<float> powers_of_two(std::uint64_t stream, std::int64_t count, std::int64_t low, std::int64_t high) {
  Random random(stream);
  std::vector<float> powers(index(count));
  for (float& p : powers) p = std::ldexp(1.0f, static_cast<int>(random.between(low, high)));
  return powers;
}

/// 0 or 1, as likely; at least one of each where there are two.
std::vector<float> halves(std::uint64_t stream, std::int64_t count) {
  Random random(stream);
  std::vector<float> factors(index(count));
  for (float& f : factors) f = random.below(2) == 0 ? 0.0f : 1.0f;
  const std::int64_t first = random.below(count);
  factors[index(first)] = 1;
  if (count > 1) factors[index((first + 1 + random.below(count - 1)) % count)] = 0;
  return factors;
}

/// Scales of the exact cases: powers of two, so that rounding before or after them makes no difference.
void exact_scales(const StateDraw& draw) {
  std::ranges::copy(powers_of_two(draw.key.stream("weight_scale"), draw.size.n, -3, 3), draw.weight_scale.begin());
}

void positive(std::span<std::uint8_t> codes) {
  for (std::uint8_t& code : codes) code &= 0x7f;
}

std::uint32_t integer_range(const Sizes& size) { return size.k <= kLongK ? 7 : 5; }
std::uint32_t sparse_one_in(const Sizes& size) { return size.k <= kLongK ? 4 : 6; }

Decisive decisive(std::int64_t rows, std::int64_t k) { return {unsigned_of(rows), unsigned_of(k)}; }

template <typename Draw>
void fill_x(const InputDraw& draw, Draw element) {
  fill_each(draw.x, draw.key.stream("x"), element);
}

template <typename Draw>
void fill_weight(const StateDraw& draw, Draw element) {
  fill_each(draw.weight, draw.key.stream("weight"), element);
  exact_scales(draw);
}

/// 64 KiB; half of a tensor that has less than twice that.
std::uint64_t prefix_length(std::size_t elements) {
  return std::min<std::uint64_t>(unsigned_of(kSixtyFourKiB), elements / 2);
}

/// Kernels that read whole tiles of 32 columns handle these apart.
std::int64_t tail_of(std::int64_t k) { return k % 32 == 0 ? 32 : k % 32; }

}  // namespace

// ---- state

void nominal_state(const StateDraw& draw) {
  std::vector<float> normals(draw.weight.size());
  fill_normal(normals, draw.key.stream("weight"));
  const auto k = index(draw.size.k);
  parallel_for(draw.weight_scale.size(), 1 + 30'000 / k, [&](std::size_t begin, std::size_t end) {
    for (std::size_t n = begin; n < end; ++n) {
      const auto row = std::span(normals).subspan(n * k, k);
      float largest = 0;
      for (float& value : row) {
        value = unquantised_weight(value);
        largest = std::max(largest, std::abs(value));
      }
      draw.weight_scale[n] = scale_of_row(largest);
      for (std::size_t i = 0; i < k; ++i) draw.weight[n * k + i] = quantised(row[i], draw.weight_scale[n]);
    }
  });
}

void one_sign_state(const StateDraw& draw) {
  nominal_state(draw);
  positive(draw.weight);
}

void random_scale_state(const StateDraw& draw) {
  nominal_state(draw);
  Random random(draw.key.stream("weight/scale"));
  rescale_weight(draw, Everywhere{random.log_uniform(-6, 0)});
  const float factor = random.log_uniform(-16, 16);
  for (float& s : draw.weight_scale) s *= factor;
}

void mixed_columns_state(const StateDraw& draw) {
  nominal_state(draw);
  const std::vector<float> of_weight = spread(draw.key.stream("weight/rows"), draw.size.n, -6, 0);
  rescale_weight(draw, ByRow{of_weight.data(), unsigned_of(draw.size.k)});
  const std::vector<float> of_scale = spread(draw.key.stream("weight_scale"), draw.size.n, -16, 16);
  for (std::size_t n = 0; n < of_scale.size(); ++n) draw.weight_scale[n] *= of_scale[n];
}

void prefix_state(const StateDraw& draw, float first, float rest) {
  nominal_state(draw);
  rescale_weight(draw, Prefix{prefix_length(draw.weight.size()), first, rest});
}

void any_code_state(const StateDraw& draw) {
  fill_each(draw.weight, draw.key.stream("weight"), AnyCode{});
  std::ranges::copy(spread(draw.key.stream("weight_scale"), draw.size.n, -14, -10), draw.weight_scale.begin());
}

void zero_rows_state(const StateDraw& draw) {
  nominal_state(draw);
  const std::vector<float> kept = halves(draw.key.stream("weight/rows"), draw.size.n);
  rescale_weight(draw, ByRow{kept.data(), unsigned_of(draw.size.k)});
  for (std::size_t n = 0; n < kept.size(); ++n)
    if (kept[n] == 0) draw.weight_scale[n] = scale_of_row(0);
}

void ternary_state(const StateDraw& draw) {
  const std::vector<float> powers = powers_of_two(draw.key.stream("weight/rows"), draw.size.n, -9, 8);
  fill_weight(draw, Ternary{decisive(draw.size.n, draw.size.k), powers.data()});
}

void integer_state(const StateDraw& draw) {
  fill_weight(draw, Integers{decisive(draw.size.n, draw.size.k), integer_range(draw.size), 1, 1});
}

void saturated_state(const StateDraw& draw) { fill_weight(draw, Saturated{unsigned_of(draw.size.k)}); }

void sparse_state(const StateDraw& draw) {
  fill_weight(draw, Integers{decisive(draw.size.n, draw.size.k), 15, 1, sparse_one_in(draw.size)});
}

void subnormal_state(const StateDraw& draw) {
  fill_weight(draw, Integers{decisive(draw.size.n, draw.size.k), integer_range(draw.size), 0x1p-9f, 1});
}

// ---- inputs

void scaled_x(const InputDraw& draw, float scale) { fill_x(draw, UniformX<Everywhere>{{scale}}); }

void one_sign_x(const InputDraw& draw) {
  scaled_x(draw, 1);
  positive(draw.x);
}

void random_scale_x(const InputDraw& draw) { scaled_x(draw, Random(draw.key.stream("x/scale")).log_uniform(-5, 6)); }

void mixed_rows_x(const InputDraw& draw, std::int64_t block) {
  const std::vector<float> factors = spread(draw.key.stream("x/rows"), (draw.size.m + block - 1) / block, -6, 6);
  fill_x(draw, UniformX<ByRow>{{factors.data(), unsigned_of(block * draw.size.k)}});
}

void loud_tail_x(const InputDraw& draw) {
  const std::int64_t tail = std::min(draw.size.k, tail_of(draw.size.k));
  fill_x(draw, UniformX<ColumnsFrom>{{unsigned_of(draw.size.k - tail), unsigned_of(draw.size.k), 64}});
}

void prefix_x(const InputDraw& draw, float first, float rest) {
  fill_x(draw, UniformX<Prefix>{{prefix_length(draw.x.size()), first, rest}});
}

void any_code_x(const InputDraw& draw) { fill_x(draw, AnyCode{}); }

void zero_rows_x(const InputDraw& draw) {
  const std::vector<float> kept = halves(draw.key.stream("x/rows"), draw.size.m);
  fill_x(draw, UniformX<ByRow>{{kept.data(), unsigned_of(draw.size.k)}});
}

void ternary_x(const InputDraw& draw) {
  const std::vector<float> powers = powers_of_two(draw.key.stream("x/rows"), draw.size.m, -9, 8);
  fill_x(draw, Ternary{decisive(draw.size.m, draw.size.k), powers.data()});
}

void integer_x(const InputDraw& draw) {
  fill_x(draw, Integers{decisive(draw.size.m, draw.size.k), integer_range(draw.size), 1, 1});
}

void saturated_x(const InputDraw& draw) { fill_x(draw, Saturated{unsigned_of(draw.size.k)}); }

void sparse_x(const InputDraw& draw) {
  fill_x(draw, Integers{decisive(draw.size.m, draw.size.k), 15, 1, sparse_one_in(draw.size)});
}

void subnormal_x(const InputDraw& draw) {
  fill_x(draw, Integers{decisive(draw.size.m, draw.size.k), integer_range(draw.size), 0x1p-9f, 1});
}

void change_some(const InputDraw& draw, int step) {
  Random random(draw.key.stream(fmt::format("x/change {}", step)));
  const std::int64_t count = random.between(1, 7);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = random.uniform(64, 96);  // 28 to 42 times 4 / sqrt(3)
    draw.x[index(random.below(std::ssize(draw.x)))] = to_e4m3(random.below(2) == 0 ? value : -value);
  }
}

}  // namespace kbh::fp8_gemm
