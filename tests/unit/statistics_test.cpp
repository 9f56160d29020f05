#include "base/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "problem/draw.hpp"

namespace kbh {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> x = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(x, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(x, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(x, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(x, 0.1), 1.3);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{7}), 7);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{9, 1, 5}), 5);
}

TEST(QuantileDeathTest, NeedsSamplesAndAShare) {
  EXPECT_DEATH(quantile({}, 0.5), "non-empty sample");
  EXPECT_DEATH(quantile(std::vector<double>{1}, 1.5), "non-empty sample");
}

TEST(MedianInterval, HasTheOrderStatisticsOfTheBinomial) {
  std::vector<double> x(30);
  std::iota(x.begin(), x.end(), 1.0);
  // Tables for n = 30 at 95 %: the 10th and the 21st.
  EXPECT_DOUBLE_EQ(median_interval(x).low, 10);
  EXPECT_DOUBLE_EQ(median_interval(x).high, 21);
  x.resize(9);
  EXPECT_DOUBLE_EQ(median_interval(x).low, 2);
  EXPECT_DOUBLE_EQ(median_interval(x).high, 8);
  x.resize(6);
  EXPECT_DOUBLE_EQ(median_interval(x).low, 1);
  EXPECT_DOUBLE_EQ(median_interval(x).high, 6);
}

TEST(MedianInterval, OfFewSamplesIsTheirRange) {
  const Interval interval = median_interval(std::vector<double>{5, 2, 9});
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 9);
}

TEST(MedianInterval, OfManySamplesDoesNotUnderflow) {
  std::vector<double> x(2000);
  std::iota(x.begin(), x.end(), 1.0);
  // n/2 - 1.96 sqrt(n)/2 and its mirror.
  EXPECT_NEAR(median_interval(x).low, 956, 2);
  EXPECT_NEAR(median_interval(x).high, 1045, 2);
}

TEST(MedianInterval, CoversTheMedianAsOftenAsItSays) {
  constexpr int kRounds = 2000;
  constexpr std::size_t kSamples = 25;
  std::vector<float> z(kRounds * kSamples);
  fill_normal(z, 17);
  int covered = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto* begin = z.data() + round * kSamples;
    const Interval interval = median_interval(std::vector<double>(begin, begin + kSamples));
    covered += interval.low <= 0 && 0 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(covered, 0.94 * kRounds);
  EXPECT_LE(covered, 0.985 * kRounds);  // discrete: 95.7 % for n = 25
}

TEST(GeometricMean, MultipliesAndTakesTheRoot) {
  EXPECT_NEAR(geometric_mean(std::vector<double>{1, 4, 16}), 4, 1e-12);
  EXPECT_EQ(geometric_mean({}), 0);
  EXPECT_NEAR(geometric_mean(std::vector<double>(1000, 1e-300)), 1e-300, 1e-310);
}

TEST(GeometricMeanDeathTest, RefusesZero) {
  EXPECT_DEATH(geometric_mean(std::vector<double>{1, 0}), "positive values");
}

TEST(Slope, OfALineIsItsSlope) {
  const std::vector<double> x = {1, 2, 5};
  const std::vector<double> y = {1e6 + 3, 1e6 + 5, 1e6 + 11};
  EXPECT_NEAR(slope(x, y), 2, 1e-9);
}

TEST(SlopeDeathTest, NeedsTwoDifferentPlaces) {
  EXPECT_DEATH(slope(std::vector<double>{1, 1}, std::vector<double>{1, 2}), "two different x");
  EXPECT_DEATH(slope(std::vector<double>{1}, std::vector<double>{1}), "two points");
}

}  // namespace
}  // namespace kbh
