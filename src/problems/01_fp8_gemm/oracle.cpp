// Exact sums. An e4m3 number is a multiple of 2^-9 below 2^9, a product of two one of 2^-18 below 2^18, and 2^14 of
// them need 18 + 18 + 14 = 50 bits: every partial sum is a double, in whatever order it is formed.
#include <algorithm>
#include <array>
#include <cmath>

#include <kbh/numbers.hpp>

#include "base/parallel.hpp"
#include "problem/draw.hpp"
#include "problem/matrix.hpp"
#include "problems/01_fp8_gemm/draws.hpp"
#include "problems/01_fp8_gemm/fp8_gemm.hpp"

namespace kbh::fp8_gemm {
namespace {

constexpr std::int64_t kRefreshedRows = 4;

using Bytes = std::span<const std::uint8_t>;

std::array<double, 256> table_of_values() {
  std::array<double, 256> table{};
  for (std::size_t code = 0; code < table.size(); ++code)
    table[code] = static_cast<double>(from_e4m3(static_cast<std::uint8_t>(code)));
  return table;
}

const std::array<double, 256>& values() {
  static const std::array<double, 256> table = table_of_values();
  return table;
}

void decode(Bytes codes, double* out) {
  const std::array<double, 256>& table = values();
  for (const std::uint8_t code : codes) *out++ = table[code];
}

/// Eight sums that the compiler keeps in vectors; exact, so that their order does not matter.
double dot(const double* a, const double* b, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  double sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const double s : sums) sum += s;
  return sum;
}

/// Fewest rows of K elements that are worth a thread of their own.
std::size_t grain_of(std::int64_t k) { return index(1 + 30'000 / k); }

/// (rows, k) decoded, with the Euclidean norm of each row.
struct Decoded {
  std::vector<double> values;
  std::vector<double> norms;

  Decoded(Bytes codes, std::int64_t rows, std::int64_t k) : values(codes.size()), norms(index(rows)) {
    parallel_for(norms.size(), grain_of(k), [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        double* row = values.data() + r * index(k);
        decode(codes.subspan(r * index(k), index(k)), row);
        norms[r] = std::sqrt(dot(row, row, index(k)));
      }
    });
  }
};

/// (rows, columns) -> (columns, rows), in blocks that fit a first-level cache.
std::vector<double> transposed(std::span<const double> a, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kBlock = 32;
  std::vector<double> out(a.size());
  parallel_for((rows + kBlock - 1) / kBlock, 1 + 1000 / columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r0 = begin * kBlock; r0 < std::min(rows, end * kBlock); r0 += kBlock)
      for (std::size_t c0 = 0; c0 < columns; c0 += kBlock)
        for (std::size_t c = c0; c < std::min(columns, c0 + kBlock); ++c)
          for (std::size_t r = r0; r < std::min(rows, r0 + kBlock); ++r) out[c * rows + r] = a[r * columns + c];
  });
  return out;
}

double scale_of(double x_norm, double weight_norm, double weight_scale, std::int64_t k) {
  return x_norm * weight_norm * weight_scale / std::sqrt(static_cast<double>(k));
}

}  // namespace

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  const Operands<ConstTensorView> of{tensors};
  const std::span<const float> weight_scale = of.weight_scale();
  const Decoded x(of.x(), size.m, size.k);
  const Decoded weight(of.weight(), size.n, size.k);

  Expected expected;
  std::vector<double>& out = expected.outputs.emplace_back(index(size.m * size.n));
  std::vector<double>& scales = expected.scales.emplace_back(out.size());
  multiply(size.m, size.n, size.k, x.values, transposed(weight.values, index(size.n), index(size.k)), out);
  parallel_for(index(size.m), grain_of(size.n), [&](std::size_t begin, std::size_t end) {
    for (std::size_t m = begin; m < end; ++m)
      for (std::size_t n = 0; n < index(size.n); ++n) {
        const auto s = static_cast<double>(weight_scale[n]);
        out[m * index(size.n) + n] *= s;
        scales[m * index(size.n) + n] = scale_of(x.norms[m], weight.norms[n], s, size.k);
      }
  });
  return expected;
}

void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected) {
  const Sizes size(key.shape);
  const Operands<TensorView> of{tensors};
  Random random(key.stream("x/rows"));
  std::vector<std::int64_t> rows;
  std::vector<std::uint8_t> drawn(index(kRefreshedRows * size.k));
  fill_each(std::span(drawn), key.stream("x"), UniformX<Everywhere>{{1}});
  for (std::int64_t i = 0; i < kRefreshedRows; ++i) {
    const std::int64_t row = random.below(size.m);
    if (std::find(rows.begin(), rows.end(), row) != rows.end()) continue;
    std::ranges::copy(row_of(std::span(drawn), std::ssize(rows), size.k), row_of(of.x(), row, size.k).begin());
    rows.push_back(row);
  }
  const Decoded x(Bytes(drawn).first(rows.size() * index(size.k)), std::ssize(rows), size.k);

  std::vector<double>& out = expected.outputs[0];
  std::vector<double>& scales = expected.scales[0];
  parallel_for(index(size.n), grain_of(size.k), [&](std::size_t begin, std::size_t end) {
    std::vector<double> weight(index(size.k));
    for (std::size_t n = begin; n < end; ++n) {
      decode(of.weight().subspan(n * weight.size(), weight.size()), weight.data());
      const double norm = std::sqrt(dot(weight.data(), weight.data(), weight.size()));
      const auto s = static_cast<double>(of.weight_scale()[n]);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const std::size_t at = index(rows[r] * size.n) + n;
        out[at] = dot(x.values.data() + r * weight.size(), weight.data(), weight.size()) * s;
        scales[at] = scale_of(x.norms[r], norm, s, size.k);
      }
    }
  });
}

}  // namespace kbh::fp8_gemm
