#include "problem/matrix.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "problem/draw.hpp"

namespace kbh {
namespace {

/// Integers, so that every order of summation gives the same bits.
std::vector<double> integers(std::int64_t count, std::uint64_t stream) {
  std::vector<double> values(static_cast<std::size_t>(count));
  fill_each(std::span(values), stream,
            [](philox::Words w, std::size_t) { return static_cast<double>(philox::below(w.v[0], 201)) - 100; });
  return values;
}

TEST(Multiply, IsExactForIntegersOfEverySize) {
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {4, 32, 256}, {3, 31, 255}, {5, 33, 257}, {64, 100, 300}, {129, 65, 17}, {1, 200, 513}}) {
    const auto a = integers(m * k, 1);
    const auto b = integers(k * n, 2);
    std::vector<double> c(static_cast<std::size_t>(m * n), -1);
    multiply(m, n, k, a, b, c);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += a[static_cast<std::size_t>(i * k + p)] * b[static_cast<std::size_t>(p * n + j)];
        ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum) << m << " " << n << " " << k << ": " << i << ", " << j;
      }
  }
}

TEST(MultiplyElsewhere, TakesLargeProductsWhileItLives) {
  const std::vector<double> a(1000 * 1000, 1);
  std::vector<double> c(1000 * 1000);
  int taken = 0;
  {
    const MultiplyElsewhere elsewhere([&](auto, auto, auto, auto, auto, std::span<double> out) {
      ++taken;
      out[0] = -1;
    });
    multiply(1000, 1000, 1000, a, a, c);
    EXPECT_EQ(c[0], -1);
    multiply(10, 1000, 1000, std::span(a).first(10'000), a, std::span(c).first(10'000));
    EXPECT_EQ(c[0], 1000) << "small products stay here";
  }
  EXPECT_EQ(taken, 1);
  multiply(1000, 1000, 1000, a, a, c);
  EXPECT_EQ(c[0], 1000);
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace kbh
