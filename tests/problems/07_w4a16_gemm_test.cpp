// What is special about 07_w4a16_gemm: the packing, every way of being honest that the text allows, the exact cases,
// and the rows that a timed call changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include <kbh/numbers.hpp>

#include "problem/registry.hpp"
#include "problems/07_w4a16_gemm/fills.hpp"
#include "problems/07_w4a16_gemm/w4a16.hpp"

namespace kbh::w4a16 {
namespace {

using testing::HasSubstr;

const Seed kSeed = "0123456789abcdef";

Shape shape(std::int64_t m, std::int64_t n, std::int64_t k) { return {{{"M", m}, {"N", n}, {"K", k}}}; }

const Problem& problem() { return find_problem("07_w4a16_gemm"); }

/// All tensors of one shape.
struct Tensors {
  Shape of;
  Sizes size;
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::byte>> bytes;

  explicit Tensors(const Shape& s) : of(s), size(s), specs(problem().tensors(s)) {
    for (const TensorSpec& spec : specs) bytes.emplace_back(spec.bytes());
  }
  Tensors(const Shape& s, const Case& c, int trial = 0) : Tensors(s) {
    c.fill_state(key(c.name, trial), inputs());
    c.fill(key(c.name, trial), inputs());
  }

  [[nodiscard]] DrawKey key(const std::string& case_name, int trial) const {
    return {kSeed, "07_w4a16_gemm", 1, of, case_name, trial};
  }
  TensorView view(std::size_t i) { return {&specs[i], bytes[i].data()}; }
  std::vector<TensorView> inputs() { return {view(0), view(1), view(2), view(3)}; }
  std::vector<ConstTensorView> const_inputs() { return {view(0), view(1), view(2), view(3)}; }
  std::span<std::uint8_t> levels() { return view(0).as<std::uint8_t>(); }
  std::span<std::uint16_t> scales() { return view(1).as<std::uint16_t>(); }
  std::span<std::uint16_t> zeros() { return view(2).as<std::uint16_t>(); }
  std::span<std::uint16_t> x() { return view(3).as<std::uint16_t>(); }
  std::span<std::uint16_t> out() { return view(4).as<std::uint16_t>(); }

  void set_level(std::int64_t k, std::int64_t j, unsigned level) {
    std::uint8_t& pair = levels()[index(k / 2 * size.n + j)];
    pair = static_cast<std::uint8_t>(k % 2 == 0 ? (pair & 0xf0u) | level : (pair & 0x0fu) | level << 4);
  }
  float level(std::int64_t k, std::int64_t j) {
    const std::uint8_t pair = levels()[index(k / 2 * size.n + j)];
    return static_cast<float>(k % 2 == 0 ? pair & 15 : pair >> 4);
  }
  float scale(std::int64_t k, std::int64_t j) { return from_bf16(scales()[index(k / kGroup * size.n + j)]); }
  float zero(std::int64_t k, std::int64_t j) { return from_bf16(zeros()[index(k / kGroup * size.n + j)]); }
  float activation(std::int64_t i, std::int64_t k) { return from_bf16(x()[index(i * size.k + k)]); }

  Expected expected() { return oracle(of, const_inputs()); }
  Comparison compared(const Case& c, const Expected& expected) {
    return compare(of, c, const_inputs(), expected, std::vector<ConstTensorView>{view(4)});
  }
};

// ---- the oracle

TEST(W4a16Oracle, ReadsLevelsScalesAndZeroPointsWhereTheTextSays) {
  // One level, one activation: the answer is x (q - z) s in one column and -x z s in the others of the group's scale.
  for (const std::int64_t k : {0, 1, 127, 128, 201, 255}) {
    Tensors t(shape(2, 48, 256));
    for (std::int64_t i = 0; i < std::ssize(t.scales()); ++i) {
      const std::int64_t group = i / 48;
      t.scales()[index(i)] = to_bf16(static_cast<float>(1 + i % 48 + 64 * group));
      t.zeros()[index(i)] = to_bf16(static_cast<float>(i % 3));
    }
    t.set_level(k, 37, 13);
    t.x()[index(t.size.k + k)] = to_bf16(-2);
    const Expected expected = t.expected();
    for (std::int64_t j = 0; j < 48; ++j) {
      const std::int64_t group = k / 128;
      const auto scale = static_cast<double>(1 + j + 64 * group);
      const auto zero = static_cast<double>((j + 48 * group) % 3);
      EXPECT_EQ(expected.outputs[0][index(j)], 0);
      EXPECT_EQ(expected.outputs[0][index(48 + j)], -2 * ((j == 37 ? 13 : 0) - zero) * scale) << k << " " << j;
    }
  }
}

TEST(W4a16Oracle, IsTheSumOfProductsWithItsScale) {
  // Rows beyond the tile of 4, columns beyond the panel of 32.
  for (const Shape& s : {shape(1, 16, 128), shape(5, 48, 384), shape(9, 80, 256)}) {
    Tensors t(s, problem().nominal());
    const Expected expected = t.expected();
    for (std::int64_t i = 0; i < t.size.m; ++i)
      for (std::int64_t j = 0; j < t.size.n; ++j) {
        double sum = 0;
        double x2 = 0;
        double w2 = 0;
        for (std::int64_t k = 0; k < t.size.k; ++k) {
          const auto x = static_cast<double>(t.activation(i, k));
          const auto w = static_cast<double>((t.level(k, j) - t.zero(k, j)) * t.scale(k, j));
          sum += x * w;
          x2 += x * x;
          w2 += w * w;
        }
        const double scale = std::sqrt(x2 * w2 / static_cast<double>(t.size.k));
        EXPECT_NEAR(expected.outputs[0][index(i * t.size.n + j)], sum, 1e-12 * scale * std::sqrt(t.size.k));
        EXPECT_NEAR(expected.scales[0][index(i * t.size.n + j)], scale, 1e-12 * scale);
      }
  }
}

TEST(W4a16Oracle, APlantedErrorIsSeenByTheReference) {
  Tensors t(shape(3, 64, 256), problem().nominal());
  Expected expected = t.expected();
  const std::vector<TensorView> outputs = {t.view(4)};
  problem().honest(t.of, t.const_inputs(), outputs, {});
  EXPECT_TRUE(t.compared(problem().nominal(), expected).pass);
  for (double& value : expected.outputs[0]) value *= 1.02;
  EXPECT_FALSE(t.compared(problem().nominal(), expected).pass);
}

// ---- what a timed call changes

TEST(W4a16Refresh, EqualsAFullOracleAndLeavesNoRowAsItWas) {
  for (const Shape& s : {shape(1, 48, 256), shape(2, 48, 128), shape(7, 32, 256), shape(40, 64, 128)}) {
    SCOPED_TRACE(s.text());
    Tensors t(s, problem().nominal());
    Expected kept = t.expected();
    for (int call = 0; call < 5; ++call) {
      const std::vector<std::uint16_t> before(t.x().begin(), t.x().end());
      refresh(t.key("nominal", 100 + call), t.inputs(), kept);
      for (std::int64_t i = 0; i < t.size.m; ++i) {
        const auto row = t.x().subspan(index(i * t.size.k), index(t.size.k));
        EXPECT_FALSE(std::equal(row.begin(), row.end(), before.begin() + i * t.size.k)) << "row " << i;
      }
      const Expected whole = t.expected();
      EXPECT_EQ(kept.outputs, whole.outputs);
      ASSERT_EQ(kept.scales[0].size(), whole.scales[0].size());
      for (std::size_t i = 0; i < whole.scales[0].size(); ++i)
        EXPECT_NEAR(kept.scales[0][i], whole.scales[0][i], 1e-14 * whole.scales[0][i]);
    }
  }
}

// ---- everything that the text allows

using Kernel = std::function<float(Tensors&, std::int64_t i, std::int64_t j)>;

template <typename Weight>
Kernel summed(Weight weight) {
  return [weight](Tensors& t, std::int64_t i, std::int64_t j) {
    float sum = 0;
    for (std::int64_t k = 0; k < t.size.k; ++k) sum += t.activation(i, k) * weight(t, k, j);
    return sum;
  };
}

/// scale * (sum of x (q + offset) - (zero + offset) * sum of x), group by group.
Kernel deferred(float offset) {
  return [offset](Tensors& t, std::int64_t i, std::int64_t j) {
    float total = 0;
    for (std::int64_t first = 0; first < t.size.k; first += kGroup) {
      float dot = 0;
      float sum = 0;
      for (std::int64_t k = first; k < first + kGroup; ++k) {
        dot += t.activation(i, k) * (t.level(k, j) + offset);
        sum += t.activation(i, k);
      }
      total += t.scale(first, j) * (dot - (t.zero(first, j) + offset) * sum);
    }
    return total;
  };
}

TEST(W4a16Honest, EveryWayThatTheTextAllowsPassesEveryCase) {
  const std::vector<std::pair<std::string, Kernel>> kernels = {
      {"weights rounded to bf16", summed([](Tensors& t, std::int64_t k, std::int64_t j) {
         return from_bf16(to_bf16((t.level(k, j) - t.zero(k, j)) * t.scale(k, j)));
       })},
      {"fp16 operands",
       [](Tensors& t, std::int64_t i, std::int64_t j) {
         float sum = 0;
         for (std::int64_t k = 0; k < t.size.k; ++k)
           sum +=
               from_f16(to_f16(t.activation(i, k))) * from_f16(to_f16((t.level(k, j) - t.zero(k, j)) * t.scale(k, j)));
         return sum;
       }},
      {"deferred", deferred(0)},
      {"deferred, 128 + q", deferred(128)},
      {"split along K in fp32",
       [](Tensors& t, std::int64_t i, std::int64_t j) {
         float parts[4] = {};
         for (std::int64_t k = 0; k < t.size.k; ++k)
           parts[k * 4 / t.size.k] += t.activation(i, k) * (t.level(k, j) - t.zero(k, j)) * t.scale(k, j);
         return (parts[0] + parts[1]) + (parts[2] + parts[3]);
       }},
  };
  for (const Case& c : problem().cases)
    for (const Shape& s : {shape(3, 128, 512), shape(1, 64, 1024)}) {
      if (c.applies && !c.applies(s)) continue;
      Tensors t(s, c);
      const Expected expected = t.expected();
      for (const auto& [name, kernel] : kernels) {
        for (std::int64_t i = 0; i < t.size.m; ++i)
          for (std::int64_t j = 0; j < t.size.n; ++j) t.out()[index(i * t.size.n + j)] = to_bf16(kernel(t, i, j));
        const Comparison comparison = t.compared(c, expected);
        EXPECT_TRUE(comparison.pass) << c.name << " " << s.text() << ": " << name << " reaches " << comparison.worst;
        EXPECT_LE(comparison.worst, 0.75) << c.name << " " << s.text() << ": " << name;
      }
    }
}

// ---- cases

TEST(W4a16Cases, ExactOnesHaveOneAnswer) {
  for (const char* name : {"exact_ternary", "exact_integers"}) {
    const Case& c = *problem().find_case(name);
    Tensors t(shape(4, 64, 4096), c);
    const Expected expected = t.expected();
    double largest = 0;
    for (const double value : expected.outputs[0]) {
      EXPECT_EQ(value, std::nearbyint(value));
      largest = std::max(largest, std::abs(value));
    }
    EXPECT_LT(largest, 0x1p23);
    EXPECT_GT(largest, 256);  // rounding to bf16 takes part
    // A unit of the last place, anywhere, fails.
    const std::vector<TensorView> outputs = {t.view(4)};
    problem().honest(t.of, t.const_inputs(), outputs, {});
    EXPECT_TRUE(t.compared(c, expected).pass);
    t.out()[77] = static_cast<std::uint16_t>(t.out()[77] ^ 1);
    EXPECT_FALSE(t.compared(c, expected).pass);
  }
}

TEST(W4a16Cases, StayInTheDomain) {
  for (const Case& c : problem().cases)
    for (const Shape& s : {shape(1, 256, 512), shape(9, 272, 384), shape(2, 16, 128)}) {
      if (c.applies && !c.applies(s)) continue;
      Tensors t(s, c);
      for (const std::uint16_t scale : t.scales()) {
        ASSERT_GE(from_bf16(scale), 0x1p-14f) << c.name;
        ASSERT_LE(from_bf16(scale), 0x1p12f) << c.name;
      }
      for (const std::uint16_t zero : t.zeros()) {
        const float z = from_bf16(zero);
        ASSERT_TRUE(z >= 0 && z <= 15 && z == std::nearbyint(z)) << c.name;
      }
      for (const std::uint16_t x : t.x()) ASSERT_LT(std::abs(from_bf16(x)), 0x1p15f) << c.name;
    }
}

TEST(W4a16Cases, NominalWeightsAreThoseOfThePublicQuantiser) {
  Tensors t(shape(1, 64, 256), problem().nominal());
  for (std::int64_t g = 0; g < 2; ++g)
    for (std::int64_t j = 0; j < 64; ++j) {
      // The range of a group of 128 normals x 0.02 is 0.06 to 0.16; both of its ends are met, or nearly.
      const float scale = t.scale(g * kGroup, j);
      EXPECT_TRUE(scale > 0.004f && scale < 0.0107f) << scale;
      float low = 15;
      float high = 0;
      double squares = 0;
      for (std::int64_t k = g * kGroup; k < (g + 1) * kGroup; ++k) {
        low = std::min(low, t.level(k, j));
        high = std::max(high, t.level(k, j));
        squares += std::pow(static_cast<double>((t.level(k, j) - t.zero(k, j)) * scale), 2);
      }
      EXPECT_LE(low, 1);
      EXPECT_GE(high, 14);
      EXPECT_NEAR(std::sqrt(squares / kGroup), 0.02, 0.006);
    }
}

TEST(W4a16Cases, OutputsPassTheLargestFp16WhereTheyClaimTo) {
  Tensors t(shape(2, 64, 256), *problem().find_case("beyond_fp16"));
  const Expected expected = t.expected();
  const auto beyond = [](double value) { return std::abs(value) > 65504; };
  EXPECT_GT(std::count_if(expected.outputs[0].begin(), expected.outputs[0].end(), beyond), 64);
}

TEST(W4a16Domain, SaysWhatIsWrong) {
  const auto outside = [](const Shape& s) { return problem().outside_domain(s).value_or(""); };
  EXPECT_EQ(outside(shape(1, 16, 128)), "");
  EXPECT_EQ(outside(shape(256, 12288, 4096)), "");
  EXPECT_EQ(outside(shape(0, 16, 128)), "M is 0, expected 1 to 4096");
  EXPECT_THAT(outside(shape(1, 24, 128)), HasSubstr("N is 24, expected a multiple of 16"));
  EXPECT_THAT(outside(shape(1, 16, 192)), HasSubstr("K is 192, expected a multiple of 128"));
  EXPECT_THAT(outside(shape(1, 65536, 16384)), HasSubstr("N * K"));
}

TEST(W4a16Work, IsThePublicCount) {
  const Work one = problem().work(shape(1, 12288, 4096));
  EXPECT_EQ(one.min_bytes, 26'771'456);
  EXPECT_EQ(one.flops, 2.0 * 12288 * 4096);
  EXPECT_EQ(problem().work(shape(256, 12288, 4096)).upstream_bytes, 35'127'296);
}

}  // namespace
}  // namespace kbh::w4a16
