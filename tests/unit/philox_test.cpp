#include "base/philox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "problem/draw.hpp"

namespace kbh {
namespace {

using philox::to_bits;

std::vector<float> normals(std::size_t n, std::uint64_t stream, std::uint64_t first = 0) {
  std::vector<float> x(n);
  fill_normal(x, stream, first);
  return x;
}

/// Two-sided: P(|Z| > z).
double tail(double z) { return std::erfc(z / std::sqrt(2.0)); }

TEST(Philox, GivesThePublishedWordsForZeroKeyAndCounter) {
  const philox::Words words = philox::words(0, std::uint64_t{0});
  EXPECT_EQ(words.v[0], 0x6627e8d5u);
  EXPECT_EQ(words.v[1], 0xe169c58du);
  EXPECT_EQ(words.v[2], 0xbc57ac4cu);
  EXPECT_EQ(words.v[3], 0x9b00dbd8u);
}

TEST(Philox, UsesAllBitsOfStreamAndElement) {
  const philox::Words words = philox::words(0x0123456789abcdef, std::uint64_t{0x1122334455});
  EXPECT_EQ(words.v[0], 0x3d61790cu);
  EXPECT_EQ(words.v[3], 0x5590f9d8u);
  EXPECT_NE(philox::words(0x1123456789abcdef, std::uint64_t{0x1122334455}).v[0], words.v[0]);
  EXPECT_NE(philox::words(0x0123456789abcdef, std::uint64_t{0x2122334455}).v[0], words.v[0]);
}

// Recorded bits: another compiler, vector width or device must give the same.
TEST(Philox, NumbersHaveTheRecordedBits) {
  struct Recorded {
    std::uint32_t word, uniform, uniform_open, normal, log_uniform;
  };
  const Recorded all[] = {
      {0x00000000, 0x00000000, 0x33800000, 0x40c752b1, 0x2b800001},
      {0x00000001, 0x00000000, 0x33800000, 0xc0c752b1, 0x2b800001},
      {0x12345678, 0x3d91a2b0, 0x3d91a2b8, 0x3fe7029c, 0x2e4e575d},
      {0x80000000, 0x3f000000, 0x3f000001, 0x3f2cab5c, 0x3f800001},
      {0xdeadbeef, 0x3f5eadbe, 0x3f5eadbf, 0xbe27cbd0, 0x4e404885},
      {0xffffffff, 0x3f7fffff, 0x3f7fffff, 0xb0206c98, 0x537fffa9},
  };
  for (const Recorded& r : all) {
    SCOPED_TRACE(r.word);
    EXPECT_EQ(to_bits(philox::uniform(r.word)), r.uniform);
    EXPECT_EQ(to_bits(philox::uniform_open(r.word)), r.uniform_open);
    EXPECT_EQ(to_bits(philox::normal(r.word)), r.normal);
    EXPECT_EQ(to_bits(philox::log_uniform(r.word, -40, 40)), r.log_uniform);
  }
  EXPECT_EQ(to_bits(philox::log(0.1f)), 0xc0135d8eu);
  EXPECT_EQ(to_bits(philox::log(3.0f)), 0x3f8c9f54u);
  EXPECT_EQ(to_bits(philox::exp2(-13.3f)), 0x38cfefc4u);
  EXPECT_EQ(to_bits(philox::exp2(0.25f)), 0x3f9837f0u);
}

TEST(Philox, LogAndExp2AreAccurate) {
  for (float y = 1e-30f; y < 1e30f; y *= 1.37f) {
    const double truth = std::log(static_cast<double>(y));
    EXPECT_NEAR(philox::log(y), truth, 1.5e-7 * std::max(1.0, std::abs(truth))) << y;
  }
  for (float t = -126; t < 127; t += 0.0371f)
    EXPECT_NEAR(philox::exp2(t) / std::exp2(static_cast<double>(t)), 1, 1e-6) << t;
}

TEST(Philox, BelowStaysBelowAndReachesBothEnds) {
  EXPECT_EQ(philox::below(0, 7), 0u);
  EXPECT_EQ(philox::below(0xffffffff, 7), 6u);
  EXPECT_EQ(philox::below(0xffffffff, 1), 0u);
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 70000; ++i) ++counts[philox::below(philox::words(5, i).v[0], 7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);  // 5 standard deviations
}

TEST(Philox, UniformOpenExcludesBothEnds) {
  EXPECT_GT(philox::uniform_open(0), 0.0f);
  EXPECT_LT(philox::uniform_open(0xffffffff), 1.0f);
  EXPECT_LT(philox::uniform(0xffffffff), 1.0f);
}

TEST(Philox, NormalIsTheQuantileOfItsWord) {
  double worst = 0;
  const auto check = [&](std::uint32_t word) {
    const double z = std::abs(philox::normal(word));
    const double wanted = static_cast<double>((word >> 1) | 1u) * 0x1p-31;
    double truth = z;  // Newton's steps on the tail probability
    for (int i = 0; i < 4; ++i) truth += (tail(truth) - wanted) / (std::sqrt(2 / M_PI) * std::exp(-truth * truth / 2));
    if (truth < 5.5) worst = std::max(worst, std::abs(z - truth) / truth);
    EXPECT_NEAR(z, truth, 2e-3);
  };
  for (std::uint32_t i = 0; i < 50000; ++i) check(i * 2654435761u);  // all over
  for (std::uint32_t i = 0; i < 50000; ++i) check(i * 8 + 2);        // the far tail
  EXPECT_LT(worst, 5e-7);
}

TEST(Philox, NormalsHaveTheMomentsAndTheShapeOfANormal) {
  constexpr std::size_t kN = 1'000'000;
  for (const std::uint64_t stream : {1ull, 0xfedcba9876543210ull}) {
    std::vector<float> x = normals(kN, stream);
    double mean = 0;
    double square = 0;
    double cube = 0;
    double fourth = 0;
    double neighbour = 0;
    for (std::size_t i = 0; i < kN; ++i) {
      const double z = x[i];
      mean += z;
      square += z * z;
      cube += z * z * z;
      fourth += z * z * z * z;
      neighbour += z * x[(i + 1) % kN];
    }
    constexpr auto n = static_cast<double>(kN);
    const double sd = 1 / std::sqrt(n);
    EXPECT_NEAR(mean / n, 0, 5 * sd);
    EXPECT_NEAR(square / n, 1, 5 * sd * std::sqrt(2.0));
    EXPECT_NEAR(cube / n, 0, 5 * sd * std::sqrt(15.0));
    EXPECT_NEAR(fourth / n, 3, 5 * sd * std::sqrt(96.0));
    EXPECT_NEAR(neighbour / n, 0, 5 * sd);

    // Kolmogorov and Smirnov: sqrt(n) D exceeds 1.95 once in a thousand.
    std::sort(x.begin(), x.end());
    double distance = 0;
    for (std::size_t i = 0; i < kN; ++i) {
      const double cdf = 0.5 * std::erfc(-static_cast<double>(x[i]) / std::sqrt(2.0));
      distance = std::max(
          {distance, std::abs(cdf - static_cast<double>(i) / n), std::abs(cdf - static_cast<double>(i + 1) / n)});
    }
    EXPECT_LT(distance * std::sqrt(n), 1.95);
    // About 63 elements beyond 4 standard deviations: the tail is there.
    const auto beyond = std::count_if(x.begin(), x.end(), [](float z) { return std::abs(z) > 4; });
    EXPECT_NEAR(static_cast<double>(beyond), n * tail(4), 5 * std::sqrt(n * tail(4)));
  }
}

TEST(Draw, BulkFillsHaveTheBitsOfTheScalarFunctions) {
  // Odd sizes, a start in the middle, and a run that crosses the low counter word.
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{12345}, (std::uint64_t{1} << 32) - 100}) {
    const std::vector<float> x = normals(1001, 42, first);
    std::vector<float> u(1001);
    fill_uniform(u, 42, -3, 5, first);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint32_t word = philox::words(42, first + i).v[0];
      ASSERT_EQ(to_bits(x[i]), to_bits(philox::normal(word))) << first + i;
      ASSERT_EQ(to_bits(u[i]), to_bits(-3 + 8 * philox::uniform(word))) << first + i;
    }
  }
}

TEST(Draw, LargeFillsDoNotDependOnTheirPieces) {
  const std::vector<float> whole = normals(700'001, 9);
  std::vector<float> pieces(whole.size());
  for (std::size_t begin = 0; begin < pieces.size(); begin += 4099)
    fill_normal(std::span(pieces).subspan(begin, std::min<std::size_t>(4099, pieces.size() - begin)), 9, begin);
  EXPECT_EQ(std::memcmp(whole.data(), pieces.data(), whole.size() * sizeof(float)), 0);
}

TEST(Draw, StreamsAreUnrelated) {
  const std::vector<float> a = normals(100'000, 1);
  const std::vector<float> b = normals(100'000, 2);
  double product = 0;
  for (std::size_t i = 0; i < a.size(); ++i) product += static_cast<double>(a[i]) * b[i];
  EXPECT_NEAR(product / 1e5, 0, 5 / std::sqrt(1e5));
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(3);
  std::vector<int> counts(3);
  for (int i = 0; i < 300; ++i) ++counts[static_cast<std::size_t>(random.between(-1, 1) + 1)];
  for (const int count : counts) EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace kbh
