#include "problem/matrix.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/every_width.hpp"
#include "base/parallel.hpp"

namespace kbh {
namespace {

// A tile of 4 x 32 sums stays in registers with 512-bit vectors; narrower ones spill a little. A panel of b, 256 x 32
// doubles, fills an L1 cache.
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 32;
constexpr std::int64_t kDepth = 256;

struct Tile {
  std::int64_t n;
  std::int64_t k;
  const double* a;
  const double* b;
  double* c;
};

/// c[0..kRows][0..kColumns] += a[.][k0..k1] * b[k0..k1][.]
KBH_EVERY_WIDTH void full_tile(const Tile& t, std::int64_t k0, std::int64_t k1) {
  double sums[kRows][kColumns];
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j) sums[i][j] = t.c[i * t.n + j];
  for (std::int64_t p = k0; p < k1; ++p) {
    const double* row = t.b + p * t.n;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const double factor = t.a[i * t.k + p];
      for (std::int64_t j = 0; j < kColumns; ++j) sums[i][j] += factor * row[j];
    }
  }
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j) t.c[i * t.n + j] = sums[i][j];
}

/// The same for what is left at the right and at the bottom.
KBH_EVERY_WIDTH void edge_tile(const Tile& t, std::int64_t k0, std::int64_t k1, std::int64_t rows,
                               std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t p = k0; p < k1; ++p) {
      const double factor = t.a[i * t.k + p];
      for (std::int64_t j = 0; j < columns; ++j) t.c[i * t.n + j] += factor * t.b[p * t.n + j];
    }
}

// Below, 16 processors are done before the operands have crossed the bus.
constexpr double kWorthTheWay = 1e9;

Multiply& elsewhere_now() {
  static Multiply multiply;
  return multiply;
}

}  // namespace

MultiplyElsewhere::MultiplyElsewhere(Multiply elsewhere) {
  expect(!elsewhere_now(), "one device multiplies at a time");
  elsewhere_now() = std::move(elsewhere);
}

MultiplyElsewhere::~MultiplyElsewhere() { elsewhere_now() = nullptr; }

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, std::span<const double> a, std::span<const double> b,
              std::span<double> c) {
  expect(std::ssize(a) == m * k && std::ssize(b) == k * n && std::ssize(c) == m * n, "the matrices have these sizes");
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (elsewhere_now() && products >= kWorthTheWay) return elsewhere_now()(m, n, k, a, b, c);
  std::fill(c.begin(), c.end(), 0.0);
  const std::int64_t bands = (m + kRows - 1) / kRows;
  const auto grain = static_cast<std::size_t>(1 + 200'000 / std::max<std::int64_t>(1, kRows * n * k));
  parallel_for(static_cast<std::size_t>(bands), grain, [&](std::size_t begin, std::size_t end) {
    for (std::int64_t j = 0; j < n; j += kColumns)
      for (std::int64_t k0 = 0; k0 < k; k0 += kDepth)
        for (auto band = static_cast<std::int64_t>(begin); band < static_cast<std::int64_t>(end); ++band) {
          const std::int64_t i = band * kRows;
          const Tile tile{n, k, a.data() + i * k, b.data() + j, c.data() + i * n + j};
          const std::int64_t k1 = std::min(k, k0 + kDepth);
          if (m - i >= kRows && n - j >= kColumns)
            full_tile(tile, k0, k1);
          else
            edge_tile(tile, k0, k1, std::min(kRows, m - i), std::min(kColumns, n - j));
        }
  });
}

}  // namespace kbh
