#include "problem/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <kbh/numbers.hpp>

namespace kbh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A (rows, columns) output of 1, 2, 3, ... and the same in doubles.
class Compare : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 40;
  static constexpr std::int64_t kColumns = 2000;  // several stretches

  Compare() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i + 1);
      expected[i] = static_cast<double>(i + 1);
    }
  }

  [[nodiscard]] Comparison compare(const Bounds& bounds, std::vector<double> scale = {}) {
    const ConstTensorView view(&spec, reinterpret_cast<const std::byte*>(values.data()));
    OutputRule rule;
    rule.scale = scale;
    rule.group_size = kColumns;
    rule.words = "as derived";
    return compare_output(view, expected, bounds, rule);
  }

  TensorSpec spec{"y", Role::output, DType::f32, {kRows, kColumns}};
  std::vector<float> values = std::vector<float>(kRows * kColumns);
  std::vector<double> expected = std::vector<double>(kRows * kColumns);
};

TEST_F(Compare, EqualPassesEveryBound) {
  const Comparison c = compare({.r = 1e-6, .frobenius = 1e-6, .group = 1e-6});
  EXPECT_TRUE(c.pass);
  EXPECT_EQ(c.worst, 0);
  EXPECT_EQ(c.total, kRows * kColumns);
  EXPECT_TRUE(compare({.exact = true}).pass);
}

TEST_F(Compare, ARelativeErrorIsHeldAgainstItsElement) {
  values[2 * kColumns + 7] *= 1.015f;
  EXPECT_TRUE(compare({.r = 0.02}).pass);
  EXPECT_NEAR(compare({.r = 0.02}).worst, 0.75, 1e-3);
  const Comparison c = compare({.r = 0.01});
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.bad, 1);
  EXPECT_NEAR(c.worst, 1.5, 1e-3);
  EXPECT_THAT(c.mismatch->index, ElementsAre(2, 7));
  EXPECT_EQ(c.mismatch->expected, "4008");
  EXPECT_THAT(c.mismatch->rule, HasSubstr("as derived"));
}

TEST_F(Compare, AScaleMakesRoomForCancellation) {
  expected[0] = 0;
  EXPECT_FALSE(compare({.r = 0.01}).pass);
  const std::vector<double> scale(expected.size(), 100);
  EXPECT_TRUE(compare({.a = 0.02, .r = 0.01}, scale).pass);
  EXPECT_FALSE(compare({.a = 0.005, .r = 0.01}, scale).pass);
}

TEST_F(Compare, NanAndInfinityFailWhereTheOracleIsFinite) {
  const std::vector<double> scale(expected.size(), 1e30);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF}) {
    values[5] = bad;
    EXPECT_FALSE(compare({.a = 1e30, .r = 1e30, .frobenius = 1e30}, scale).pass);
    EXPECT_FALSE(compare({.frobenius = 1e30}).pass);
    EXPECT_FALSE(compare({.exact = true}).pass);
  }
}

TEST_F(Compare, InfinityIsRightWhereTheOracleSaysSo) {
  expected[5] = kInfinity;
  EXPECT_FALSE(compare({.r = 0.01, .frobenius = 0.01}).pass);
  values[5] = HUGE_VALF;
  EXPECT_TRUE(compare({.r = 0.01, .frobenius = 0.01}).pass);
  values[5] = -HUGE_VALF;
  EXPECT_FALSE(compare({.r = 0.01}).pass);
}

TEST_F(Compare, SmallErrorsEverywhereAreSeenByTheFrobeniusBound) {
  for (float& value : values) value *= 1.005f;
  EXPECT_TRUE(compare({.r = 0.01}).pass);
  const Comparison c = compare({.r = 0.01, .frobenius = 0.004});
  EXPECT_FALSE(c.pass);
  EXPECT_NEAR(c.worst, 1.25, 0.01);
  EXPECT_THAT(c.mismatch->rule, HasSubstr("over the whole tensor"));
}

TEST_F(Compare, OneBadRowIsSeenByTheGroupBound) {
  for (std::size_t i = 3 * kColumns; i < 4 * kColumns; ++i) values[i] *= 1.009f;
  EXPECT_TRUE(compare({.r = 0.01, .frobenius = 0.004}).pass);
  const Comparison c = compare({.r = 0.01, .frobenius = 0.004, .group = 0.005});
  EXPECT_FALSE(c.pass);
  EXPECT_THAT(c.mismatch->index, ElementsAre(3, 0));
}

TEST_F(Compare, ExactMeansTheOracleRoundedOnceToTheOutputsType) {
  TensorSpec bf16{"y", Role::output, DType::bf16, {2}};
  // Just above the middle of two bf16 numbers, by less than a float can show: rounding twice would go down to even.
  const std::vector<double> exact = {1.0 + 0x1p-8 + 0x1p-40, -(1.0 + 0x1p-8 - 0x1p-40)};
  std::vector<std::uint16_t> out = {0x3f81, 0xbf80};
  const auto judge = [&] {
    return compare_output({&bf16, reinterpret_cast<const std::byte*>(out.data())}, exact, {.exact = true}, {}).pass;
  };
  EXPECT_TRUE(judge());
  out[0] = 0x3f80;
  EXPECT_FALSE(judge());
}

TEST_F(Compare, UpstreamsToleranceIsUpstreams) {
  Expected e{{expected}, {}};
  const ConstTensorView view(&spec, reinterpret_cast<const std::byte*>(values.data()));
  const std::vector<ConstTensorView> outputs = {view};
  EXPECT_TRUE(accepted_upstream({0, 0}, e, outputs));
  values[9] = 10.5f;
  EXPECT_FALSE(accepted_upstream({0.49, 0}, e, outputs));
  EXPECT_TRUE(accepted_upstream({0.51, 0}, e, outputs));
  EXPECT_TRUE(accepted_upstream({0, 0.048}, e, outputs));  // 0.048 * 10.5 > 0.5: of the output, not of the reference
  values[9] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(accepted_upstream({1e30, 1e30}, e, outputs));
}

TEST_F(Compare, RmsScalesHaveAFloor) {
  const std::vector<double> ref = {3, 4, 0, 0, 0, 0, 0, 0};
  const std::vector<double> scales = rms_scales(ref, 2, 8);
  EXPECT_NEAR(scales[0], std::sqrt(12.5), 1e-12);
  EXPECT_NEAR(scales[7], std::sqrt(25.0 / 8) / 16, 1e-12);
}

TEST(Combined, FailsWithTheFirstThatFails) {
  Comparison right{.pass = true, .worst = 0.5, .bad = 0, .total = 10, .mismatch = {}};
  Comparison wrong{.pass = false, .worst = 3, .bad = 2, .total = 5, .mismatch = Mismatch{}};
  wrong.mismatch->output = "second";
  const std::vector<Comparison> both = {right, wrong};
  const Comparison all = combined(both);
  EXPECT_FALSE(all.pass);
  EXPECT_EQ(all.worst, 3);
  EXPECT_EQ(all.bad, 2);
  EXPECT_EQ(all.total, 15);
  EXPECT_EQ(all.mismatch->output, "second");
}

}  // namespace
}  // namespace kbh
