#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include <kbh/numbers.hpp>

#include "problem/registry.hpp"
#include "problems/01_fp8_gemm/fills.hpp"

namespace kbh::fp8_gemm {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Optional;

Shape shape(std::int64_t m, std::int64_t n, std::int64_t k) { return {{{"M", m}, {"N", n}, {"K", k}}}; }

const Problem& problem() { return find_problem("01_fp8_gemm"); }

DrawKey key(const Shape& s, std::string_view case_name, int trial = 0) {
  return {"0123456789abcdef", "01_fp8_gemm", 1, s, std::string(case_name), trial};
}

/// All tensors of one shape.
struct Tensors {
  Shape of;
  Sizes size;
  std::vector<TensorSpec> specs;
  std::vector<std::uint8_t> weight;
  std::vector<float> weight_scale;
  std::vector<std::uint8_t> x;
  std::vector<std::uint16_t> out;

  explicit Tensors(const Shape& s)
      : of(s),
        size(s),
        specs(problem().tensors(s)),
        weight(index(size.n * size.k)),
        weight_scale(index(size.n), 1.0f),
        x(index(size.m * size.k)),
        out(index(size.m * size.n), 0xabab) {}

  std::array<TensorView, 3> given() {
    return {view(0, weight.data()), view(1, weight_scale.data()), view(2, x.data())};
  }
  std::array<TensorView, 1> outputs() { return {view(3, out.data())}; }
  Expected expected() {
    const auto all = given();
    return oracle(of, std::array<ConstTensorView, 3>{all[0], all[1], all[2]});
  }
  Comparison judge(const Case& c, const Expected& right) {
    const auto all = given();
    return compare(of, c, std::array<ConstTensorView, 3>{all[0], all[1], all[2]}, right,
                   std::array<ConstTensorView, 1>{outputs()[0]});
  }

 private:
  template <typename T>
  TensorView view(std::size_t i, T* data) {
    return {&specs[i], reinterpret_cast<std::byte*>(data)};
  }
};

Tensors drawn(const Case& c, const Shape& s, int trial = 0) {
  Tensors tensors(s);
  const auto all = tensors.given();
  c.fill_state(key(s, c.name, trial), std::span(all).first(2));
  c.fill(key(s, c.name, trial), all);
  return tensors;
}

Tensors drawn(std::string_view name, const Shape& s, int trial = 0) {
  return drawn(*problem().find_case(name), s, trial);
}

/// An e4m3 number in units of 2^-9, of which all of them are multiples.
std::int64_t in_units(std::uint8_t code) { return static_cast<std::int64_t>(from_e4m3(code) * 512); }

std::int64_t term(const Tensors& t, std::int64_t m, std::int64_t n, std::int64_t k) {
  return in_units(t.x[index(m * t.size.k + k)]) * in_units(t.weight[index(n * t.size.k + k)]);
}

double value_of(std::int64_t units) { return static_cast<double>(units) * 0x1p-18; }

// ---- what the problem declares

TEST(Fp8Gemm, CountsWorkAsUpstreamDoes) {
  const auto bytes = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return problem().work(shape(m, n, k)).upstream_bytes;
  };
  EXPECT_EQ(bytes(4096, 4096, 4096), 67'108'864);
  EXPECT_EQ(bytes(4096, 4096, 4127), 67'362'816);
  EXPECT_EQ(bytes(32, 8192, 8192), 67'895'296);
  EXPECT_EQ(bytes(4096, 14336, 4096), 192'937'984);
  const Work work = problem().work(shape(32, 8192, 8192));
  EXPECT_EQ(work.flops, 2.0 * 32 * 8192 * 8192);
  EXPECT_EQ(work.upstream_flops, work.flops);
  EXPECT_EQ(work.min_bytes, work.upstream_bytes + 4 * 8192);
  EXPECT_EQ(work.flops_dtype, DType::e4m3);
}

TEST(Fp8Gemm, NamesWhatLiesOutsideTheDomain) {
  const auto outside = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return problem().outside_domain(shape(m, n, k));
  };
  EXPECT_EQ(outside(4096, 14336, 4096), std::nullopt);
  EXPECT_EQ(outside(1, 1, 1), std::nullopt);
  EXPECT_THAT(outside(0, 1, 1), Optional(HasSubstr("M is 0, expected 1 to 65536")));
  EXPECT_THAT(outside(1, 70000, 1), Optional(HasSubstr("N is 70000")));
  EXPECT_THAT(outside(1, 1, 16385), Optional(HasSubstr("K is 16385, expected 1 to 16384")));
  EXPECT_THAT(outside(65536, 65536, 1), Optional(HasSubstr("M * N is 4294967296")));
}

// ---- the oracle

TEST(Fp8Gemm, OracleEqualsIntegerArithmetic) {
  for (const char* name : {"nominal", "any_code", "exact_saturated", "one_sign"})
    for (const Shape& s : {shape(1, 1, 1), shape(3, 5, 7), shape(9, 33, 257)}) {
      SCOPED_TRACE(std::string(name) + " " + s.text());
      Tensors t = drawn(name, s);
      const Expected e = t.expected();
      for (std::int64_t m = 0; m < t.size.m; ++m)
        for (std::int64_t n = 0; n < t.size.n; ++n) {
          std::int64_t sum = 0;
          std::int64_t x_square = 0;
          std::int64_t weight_square = 0;
          for (std::int64_t k = 0; k < t.size.k; ++k) {
            sum += term(t, m, n, k);
            x_square += in_units(t.x[index(m * t.size.k + k)]) * in_units(t.x[index(m * t.size.k + k)]);
            weight_square += in_units(t.weight[index(n * t.size.k + k)]) * in_units(t.weight[index(n * t.size.k + k)]);
          }
          const auto scale = static_cast<double>(t.weight_scale[index(n)]);
          EXPECT_EQ(e.outputs[0][index(m * t.size.n + n)], value_of(sum) * scale);
          EXPECT_NEAR(
              e.scales[0][index(m * t.size.n + n)] /
                  (std::sqrt(value_of(x_square) * value_of(weight_square) / static_cast<double>(t.size.k)) * scale),
              1, 1e-12);
        }
    }
}

TEST(Fp8Gemm, RefreshEqualsTheWholeOracle) {
  for (const Shape& s : {shape(1, 3, 5), shape(24, 40, 127), shape(70, 33, 300)}) {
    SCOPED_TRACE(s.text());
    Tensors t = drawn(problem().nominal(), s);
    Expected kept = t.expected();
    for (int trial = 1; trial <= 5; ++trial) {
      const std::vector<std::uint8_t> before = t.x;
      refresh(key(s, "nominal", trial), t.given(), kept);
      std::int64_t changed = 0;
      for (std::int64_t m = 0; m < t.size.m; ++m)
        changed +=
            std::ranges::equal(row_of(std::span(before), m, t.size.k), row_of(std::span(t.x), m, t.size.k)) ? 0 : 1;
      EXPECT_GE(changed, 1);
      EXPECT_LE(changed, 4);
      const Expected whole = t.expected();
      EXPECT_EQ(kept.outputs, whole.outputs);
      EXPECT_EQ(kept.scales, whole.scales);
    }
  }
}

TEST(Fp8Gemm, APlantedFaultInTheOracleIsNoticedByTheReference) {
  const Case& nominal = problem().nominal();
  Tensors t = drawn(nominal, shape(24, 40, 127));
  const auto all = t.given();
  problem().honest(t.of, std::array<ConstTensorView, 3>{all[0], all[1], all[2]}, t.outputs(), {});
  const Expected right = t.expected();
  EXPECT_TRUE(t.judge(nominal, right).pass);

  Expected lost_column = right;
  for (std::int64_t m = 0; m < t.size.m; ++m)
    for (std::int64_t n = 0; n < t.size.n; ++n)
      lost_column.outputs[0][index(m * t.size.n + n)] -=
          value_of(term(t, m, n, t.size.k - 1)) * static_cast<double>(t.weight_scale[index(n)]);
  EXPECT_FALSE(t.judge(nominal, lost_column).pass);

  Expected one_element = right;
  one_element.outputs[0][123] += 0.1 * right.scales[0][123];
  EXPECT_FALSE(t.judge(nominal, one_element).pass);
}

// ---- the data

TEST(Fp8Gemm, NominalDataAreUpstreams) {
  Tensors t = drawn(problem().nominal(), shape(40, 30, 1000));
  for (const std::uint8_t code : t.x) EXPECT_LE(std::abs(from_e4m3(code)), 4);
  double square = 0;
  for (const std::uint8_t code : t.x) square += from_e4m3(code) * from_e4m3(code);
  EXPECT_NEAR(std::sqrt(square / 40'000), 4 / std::sqrt(3), 0.05);
  square = 0;
  for (std::int64_t n = 0; n < 30; ++n) {
    const auto row = row_of(std::span(t.weight), n, 1000);
    float largest = 0;
    for (const std::uint8_t code : row) largest = std::max(largest, std::abs(from_e4m3(code)));
    EXPECT_EQ(largest, 448);
    const float largest_weight = t.weight_scale[index(n)] * 448;
    EXPECT_NEAR(from_bf16(to_bf16(largest_weight)), largest_weight, 1e-6f * largest_weight);
    for (const std::uint8_t code : row) {
      const float weight = from_e4m3(code) * t.weight_scale[index(n)];
      square += weight * weight;
    }
  }
  EXPECT_NEAR(std::sqrt(square / 30'000), 0.02, 0.001);
}

TEST(Fp8Gemm, SmallInputsAreSubnormal) {
  const Tensors t = drawn("small_input", shape(20, 3, 500));
  std::set<float> values;
  for (const std::uint8_t code : t.x) values.insert(from_e4m3(code));
  EXPECT_EQ(values, (std::set<float>{-0x1p-8f, -0x1p-9f, 0, 0x1p-9f, 0x1p-8f}));
}

TEST(Fp8Gemm, AnyCodeIsEveryFiniteOne) {
  const Tensors t = drawn("any_code", shape(20, 20, 500));
  const auto codes = [](const std::vector<std::uint8_t>& tensor) { return std::set(tensor.begin(), tensor.end()); };
  for (const auto& found : {codes(t.x), codes(t.weight)}) {
    EXPECT_EQ(found.size(), 254u);
    EXPECT_EQ(found.count(0x7f) + found.count(0xff), 0u);
  }
}

TEST(Fp8Gemm, NothingIsEverNaN) {
  for (const Case& c : problem().cases)
    for (const Shape& s : {shape(24, 40, 127), shape(2, 1, 3)}) {
      const Tensors t = drawn(c, s);
      for (const auto* codes : {&t.x, &t.weight})
        for (const std::uint8_t code : *codes) ASSERT_NE(code & 0x7f, 0x7f) << c.name;
      for (const float scale : t.weight_scale) ASSERT_TRUE(scale > 0x1p-60f && scale < 0x1p20f) << c.name << scale;
    }
}

TEST(Fp8Gemm, ExactCasesNeedFourteenBits) {
  for (const Case& c : problem().cases) {
    if (!c.bounds.exact) continue;
    for (const std::int64_t k : {1, 127, 4127, 8192, 16384}) {
      SCOPED_TRACE(c.name + " K=" + std::to_string(k));
      const Tensors t = drawn(c, shape(6, 10, k));
      for (const float scale : t.weight_scale)
        EXPECT_EQ(std::abs(std::frexp(scale, std::array<int, 1>{}.data())), 0.5f);
      for (std::int64_t m = 0; m < 6; ++m)
        for (std::int64_t n = 0; n < 10; ++n) {
          std::int64_t bits = 0;
          std::int64_t sum = 0;
          std::int64_t largest = 0;
          for (std::int64_t i = 0; i < k; ++i) {
            const std::int64_t next = term(t, m, n, i);
            bits |= std::abs(next);
            sum += next;
            largest = std::max({largest, std::abs(sum), std::abs(next)});
          }
          const int unit = std::countr_zero(static_cast<std::uint64_t>(bits));
          EXPECT_LT(largest >> unit, 1 << 14);
          EXPECT_NE(term(t, m, n, k - 1), 0);  // what a dropped odd column loses
          if (c.name == "exact_sparse" && k > 100) EXPECT_LT(largest >> unit, (1 << 14) * 0.9);
        }
    }
  }
}

TEST(Fp8Gemm, EveryColumnDecidesAnOutputOfTheTernaryCase) {
  const Case& c = *problem().find_case("exact_ternary");
  for (const Shape& s : {shape(1, 1, 33), shape(3, 2, 127), shape(8, 24, 63)})
    for (int trial = 0; trial < 3; ++trial) {
      Tensors t = drawn(c, s, trial);
      const Expected right = t.expected();
      for (std::int64_t dropped = 0; dropped < t.size.k; ++dropped) {
        for (std::int64_t m = 0; m < t.size.m; ++m)
          for (std::int64_t n = 0; n < t.size.n; ++n) {
            std::int64_t sum = 0;
            for (std::int64_t k = 0; k < t.size.k; ++k) sum += k == dropped ? 0 : term(t, m, n, k);
            t.out[index(m * t.size.n + n)] = to_bf16(static_cast<float>(value_of(sum)) * t.weight_scale[index(n)]);
          }
        EXPECT_FALSE(t.judge(c, right).pass) << s.text() << " without column " << dropped;
      }
    }
}

TEST(Fp8Gemm, InPlaceChangesAreFewAndLarge) {
  const Case& c = *problem().find_case("in_place");
  for (const Shape& s : {shape(1, 3, 2), shape(24, 40, 127)})
    for (int trial = 0; trial < 20; ++trial) {
      Tensors t = drawn(c, s, trial);
      const std::vector<std::uint8_t> before = t.x;
      c.change(key(s, c.name, trial), 1, t.given(), {});
      std::int64_t changed = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i] == t.x[i]) continue;
        ++changed;
        EXPECT_GE(std::abs(from_e4m3(t.x[i])), 64);
      }
      EXPECT_GE(changed, 1);
      EXPECT_LE(changed, 7);
      Tensors other = drawn(c, s, trial);
      c.change(key(s, c.name, trial), 2, other.given(), {});
      if (s["M"] > 1) EXPECT_NE(other.x, t.x);
    }
}

// ---- honest kernels that are less exact than our reference

/// What a Hopper tensor core does with fp8: per step of 32 columns, products and sum are aligned to the largest of them
/// and cut towards zero below 13 bits under its leading one; then so is the new sum. All in units of 2^-18.
std::int64_t cut(std::int64_t value, int bits) {
  const std::int64_t magnitude = std::abs(value) >> bits << bits;
  return value < 0 ? -magnitude : magnitude;
}

int bits_to_cut(std::int64_t magnitudes) {
  return std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(magnitudes))) - 14);
}

/// `promote`: columns after which the sum moves to fp32; 0: never.
float tensor_core_sum(const Tensors& t, std::int64_t m, std::int64_t n, std::int64_t promote) {
  std::int64_t sum = 0;
  float promoted = 0;
  for (std::int64_t k0 = 0; k0 < t.size.k; k0 += 32) {
    std::array<std::int64_t, 33> terms{sum};
    for (std::int64_t k = k0; k < std::min(t.size.k, k0 + 32); ++k) terms[index(k - k0 + 1)] = term(t, m, n, k);
    std::int64_t magnitudes = 0;
    for (const std::int64_t v : terms) magnitudes |= std::abs(v);
    sum = 0;
    for (const std::int64_t v : terms) sum += cut(v, bits_to_cut(magnitudes));
    sum = cut(sum, bits_to_cut(std::abs(sum)));
    if (promote == 0 || (k0 + 32) % promote != 0) continue;
    promoted += static_cast<float>(value_of(sum));
    sum = 0;
  }
  return promoted + static_cast<float>(value_of(sum));
}

void answer_as_tensor_core(Tensors& t, std::int64_t promote) {
  for (std::int64_t m = 0; m < t.size.m; ++m)
    for (std::int64_t n = 0; n < t.size.n; ++n)
      t.out[index(m * t.size.n + n)] = to_bf16(tensor_core_sum(t, m, n, promote) * t.weight_scale[index(n)]);
}

/// The test's names: K, and the sizes of the output with it.
class OnATensorCore : public testing::TestWithParam<std::array<std::int64_t, 3>> {
 protected:
  const Shape of = shape(GetParam()[0], GetParam()[1], GetParam()[2]);
};

TEST_P(OnATensorCore, FastAndPromotedAccumulationPassEveryCase) {
  double worst = 0;
  for (const Case& c : problem().cases) {
    if (c.applies && !c.applies(of)) continue;
    Tensors t = drawn(c, of);
    const Expected right = t.expected();
    for (const std::int64_t promote : {0, 128}) {
      SCOPED_TRACE(c.name + (promote == 0 ? " fast" : " promoted"));
      answer_as_tensor_core(t, promote);
      const Comparison comparison = t.judge(c, right);
      EXPECT_TRUE(comparison.pass) << comparison.mismatch.value_or(Mismatch{}).rule;
      if (c.bounds.exact) EXPECT_EQ(comparison.worst, 0);
      worst = std::max(worst, comparison.worst);
    }
  }
  EXPECT_GT(worst, 0.3);  // of the bound: what is tolerated is not idle
}

INSTANTIATE_TEST_SUITE_P(Fp8Gemm, OnATensorCore,
                         testing::Values(std::array<std::int64_t, 3>{12, 24, 127},
                                         std::array<std::int64_t, 3>{1, 1, 4096},
                                         std::array<std::int64_t, 3>{12, 24, 4096},
                                         std::array<std::int64_t, 3>{12, 24, 4127},
                                         std::array<std::int64_t, 3>{12, 24, 8192}));

TEST(Fp8Gemm, TheOneSignCaseTellsTheAccumulator) {
  const Case& c = *problem().find_case(kOneSign);
  const auto note = [&](std::int64_t k, std::int64_t promote) {
    Tensors t = drawn(c, shape(12, 24, k));
    const Expected right = t.expected();
    answer_as_tensor_core(t, promote);
    return t.judge(c, right).note;
  };
  for (const std::int64_t k : {512, 543, 1024, 4096}) {
    EXPECT_THAT(note(k, 0), HasSubstr("accumulator: fast")) << k;
    EXPECT_THAT(note(k, 128), HasSubstr("accumulator: promoted")) << k;
  }
  EXPECT_THAT(note(127, 0), HasSubstr("too few terms to tell"));
}

TEST(Fp8Gemm, TheOneSignCaseFailsFarAboveTheLawOnly) {
  const Case& c = *problem().find_case(kOneSign);
  Tensors t = drawn(c, shape(12, 24, 4096));
  const Expected right = t.expected();
  const auto judged_with_bias = [&](double bias) {
    for (std::size_t i = 0; i < t.out.size(); ++i)
      t.out[i] = to_bf16(static_cast<float>(right.outputs[0][i] * (1 - bias)));
    return t.judge(c, right).pass;
  };
  EXPECT_TRUE(judged_with_bias(0.072));
  EXPECT_TRUE(judged_with_bias(0.14));
  EXPECT_FALSE(judged_with_bias(0.15));
}

TEST(Fp8Gemm, RoundingBeforeTheScaleTooIsTolerated) {
  for (const Case& c : problem().cases) {
    Tensors t = drawn(c, shape(24, 40, 543));
    const Expected right = t.expected();
    for (std::size_t i = 0; i < t.out.size(); ++i) {
      const float scale = t.weight_scale[i % 40];
      t.out[i] =
          to_bf16(from_bf16(to_bf16(static_cast<float>(right.outputs[0][i] / static_cast<double>(scale)))) * scale);
    }
    EXPECT_TRUE(t.judge(c, right).pass) << c.name;
  }
}

TEST(Fp8Gemm, BoundsGrowWithKAsMeasured) {
  const auto at = [](std::int64_t k) { return zero_mean_bounds(Sizes(shape(4096, 4096, k))); };
  EXPECT_EQ(at(1).frobenius, .0045);
  EXPECT_EQ(at(4096).frobenius, .0045);
  EXPECT_EQ(at(4127).frobenius, .0045);
  EXPECT_NEAR(at(8192).frobenius, .0055, .0001);
  EXPECT_EQ(at(512).a, .012);
  EXPECT_EQ(at(4096).a, .018);
  EXPECT_NEAR(at(8192).a, .0303, .0001);
  EXPECT_EQ(zero_mean_bounds(Sizes(shape(15, 17, 64))).frobenius, 0);
  EXPECT_NEAR(one_sign_bounds(Sizes(shape(64, 64, 4096))).frobenius, 2 * .072, .001);
  EXPECT_NEAR(one_sign_bounds(Sizes(shape(64, 64, 8192))).frobenius, 4 * .072, .001);
}

}  // namespace
}  // namespace kbh::fp8_gemm
