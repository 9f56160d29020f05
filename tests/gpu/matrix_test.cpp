#include "device/cuda/matrix.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/cuda/device.hpp"
#include "problem/matrix.hpp"

namespace kbh::cuda {
namespace {

struct Size {
  std::int64_t m, n, k;
};

/// Every partial sum of such elements is a double, so that both products are exact, in whatever order.
std::vector<double> whole_numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& v : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<double>(static_cast<std::int64_t>(seed >> 50) - (1 << 13));
  }
  return values;
}

TEST(MultiplierOnAGpu, AgreesWithTheProcessor) {
  if (!driver_state().usable) GTEST_SKIP() << driver_state().why;
  const Context context(0);
  Multiplier on_gpu;
  for (const Size& s : {Size{1, 1, 1}, {3, 5, 7}, {64, 64, 16}, {65, 63, 17}, {129, 200, 333}, {7, 1000, 4127}}) {
    const auto a = whole_numbers(s.m * s.k, 1);
    const auto b = whole_numbers(s.k * s.n, 2);
    std::vector<double> expected(static_cast<std::size_t>(s.m * s.n));
    std::vector<double> got(expected.size(), std::nan(""));
    multiply(s.m, s.n, s.k, a, b, expected);
    on_gpu(s.m, s.n, s.k, a, b, got);
    EXPECT_EQ(expected, got) << s.m << " x " << s.n << " x " << s.k;
  }
}

}  // namespace
}  // namespace kbh::cuda
