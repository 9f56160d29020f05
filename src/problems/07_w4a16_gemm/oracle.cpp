#include <algorithm>
#include <cmath>

#include <kbh/numbers.hpp>

#include "base/every_width.hpp"
#include "base/parallel.hpp"
#include "problem/compare.hpp"
#include "problems/07_w4a16_gemm/fills.hpp"

namespace kbh::w4a16 {
namespace {

constexpr std::int64_t kPanel = 32;  // columns whose sums stay in registers: a panel of one group is 32 KiB of doubles
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kRefreshedRows = 2;

struct Weights {
  Sizes size;
  const std::uint8_t* levels;
  const std::uint16_t* scales;
  const std::uint16_t* zeros;

  Weights(const Sizes& s, std::span<const ConstTensorView> tensors)
      : size(s),
        levels(tensors[0].as<std::uint8_t>().data()),
        scales(tensors[1].as<std::uint16_t>().data()),
        zeros(tensors[2].as<std::uint16_t>().data()) {}
};

/// One group of some columns, dequantised; unused columns hold 0.
struct Panel {
  double weight[kGroup][kPanel];
};

/// (q - z) s for columns [first, first + columns) of a group; adds the squares to `squares`.
KBH_EVERY_WIDTH void dequantise(const Weights& w, std::int64_t group, std::int64_t first, std::int64_t columns,
                                Panel& panel, double* squares) {
  double scale[kPanel];
  double zero[kPanel];
  for (std::int64_t j = 0; j < columns; ++j) {
    scale[j] = static_cast<double>(from_bf16(w.scales[group * w.size.n + first + j]));
    zero[j] = static_cast<double>(from_bf16(w.zeros[group * w.size.n + first + j]));
  }
  for (std::int64_t pair = 0; pair < kGroup / 2; ++pair) {
    const std::uint8_t* levels = w.levels + (group * (kGroup / 2) + pair) * w.size.n + first;
    double* even = panel.weight[2 * pair];
    double* odd = panel.weight[2 * pair + 1];
    for (std::int64_t j = 0; j < columns; ++j) {
      even[j] = (static_cast<double>(levels[j] & 15) - zero[j]) * scale[j];
      odd[j] = (static_cast<double>(levels[j] >> 4) - zero[j]) * scale[j];
      squares[j] += even[j] * even[j] + odd[j] * odd[j];
    }
  }
}

/// sums[i][.] += x[i][k] * weight[k][.] for `Rows` rows of x, which lie `stride` apart.
template <std::int64_t Rows>
[[gnu::always_inline]] inline void multiply_rows(const double* x, std::int64_t stride, const Panel& panel,
                                                 double* sums) {
  double sum[Rows][kPanel];
  for (std::int64_t i = 0; i < Rows; ++i)
    for (std::int64_t j = 0; j < kPanel; ++j) sum[i][j] = sums[i * kPanel + j];
  for (std::int64_t k = 0; k < kGroup; ++k)
    for (std::int64_t i = 0; i < Rows; ++i) {
      const double factor = x[i * stride + k];
      for (std::int64_t j = 0; j < kPanel; ++j) sum[i][j] += factor * panel.weight[k][j];
    }
  for (std::int64_t i = 0; i < Rows; ++i)
    for (std::int64_t j = 0; j < kPanel; ++j) sums[i * kPanel + j] = sum[i][j];
}

KBH_EVERY_WIDTH void multiply_panel(const double* x, std::int64_t rows, std::int64_t stride, const Panel& panel,
                                    double* sums) {
  std::int64_t i = 0;
  for (; i + kRows <= rows; i += kRows) multiply_rows<kRows>(x + i * stride, stride, panel, sums + i * kPanel);
  for (; i < rows; ++i) multiply_rows<1>(x + i * stride, stride, panel, sums + i * kPanel);
}

struct Products {
  std::vector<double> values;  // (rows, N)
  std::vector<double> norms;   // |w_j|, N
};

/// `rows` rows of x (rows, K) times the weights, dequantised once. Columns are shared out, so that a single row uses
/// all processors; each sum runs in the order of k.
Products products(const Weights& w, std::span<const double> x) {
  const Sizes& size = w.size;
  const std::int64_t rows = std::ssize(x) / size.k;
  Products result{std::vector<double>(index(rows * size.n)), std::vector<double>(index(size.n))};
  const std::int64_t panels = (size.n + kPanel - 1) / kPanel;
  const auto grain = index(1 + 200'000 / (size.k * kPanel * (1 + rows / 4)));
  parallel_for(index(panels), grain, [&](std::size_t begin, std::size_t end) {
    Panel panel{};
    std::vector<double> sums(index(rows * kPanel));
    for (auto p = static_cast<std::int64_t>(begin); p < static_cast<std::int64_t>(end); ++p) {
      const std::int64_t first = p * kPanel;
      const std::int64_t columns = std::min(kPanel, size.n - first);
      std::fill(sums.begin(), sums.end(), 0.0);
      double squares[kPanel] = {};
      for (std::int64_t g = 0; g < size.groups(); ++g) {
        dequantise(w, g, first, columns, panel, squares);
        multiply_panel(x.data() + g * kGroup, rows, size.k, panel, sums.data());
      }
      for (std::int64_t i = 0; i < rows; ++i)
        std::copy_n(sums.data() + i * kPanel, columns, result.values.data() + i * size.n + first);
      for (std::int64_t j = 0; j < columns; ++j) result.norms[index(first + j)] = std::sqrt(squares[j]);
    }
  });
  return result;
}

std::vector<double> to_doubles(std::span<const std::uint16_t> bf16) {
  std::vector<double> values(bf16.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(from_bf16(bf16[i]));
  return values;
}

/// Writes rows [first, ...) of the oracle's answer: values, and the scales |x_i| |w_j| / sqrt(K).
void write_rows(const Sizes& size, std::int64_t first, std::span<const double> x, const Products& from, Expected& to) {
  std::copy(from.values.begin(), from.values.end(), to.outputs[0].begin() + first * size.n);
  for (std::int64_t i = 0; i < std::ssize(x) / size.k; ++i) {
    double squares = 0;
    for (const double value : x.subspan(index(i * size.k), index(size.k))) squares += value * value;
    const double norm = std::sqrt(squares / static_cast<double>(size.k));
    double* scales = to.scales[0].data() + (first + i) * size.n;
    for (std::int64_t j = 0; j < size.n; ++j) scales[j] = norm * from.norms[index(j)];
  }
}

}  // namespace

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  const std::vector<double> x = to_doubles(tensors[3].as<std::uint16_t>());
  Expected expected{{std::vector<double>(index(size.m * size.n))}, {std::vector<double>(index(size.m * size.n))}};
  write_rows(size, 0, x, products(Weights(size, tensors), x), expected);
  return expected;
}

void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected) {
  const Inputs inputs(key, tensors);
  const Sizes& size = inputs.size;
  Random random = inputs.random("refresh");
  std::vector<double>& values = expected.outputs[0];
  std::vector<double>& scales = expected.scales[0];

  const std::int64_t turn = size.m > 1 ? random.between(1, size.m - 1) : 0;
  std::rotate(inputs.x.begin(), inputs.x.begin() + turn * size.k, inputs.x.end());
  std::rotate(values.begin(), values.begin() + turn * size.n, values.end());
  std::rotate(scales.begin(), scales.begin() + turn * size.n, scales.end());
  for (std::int64_t i = 0; i < size.m; ++i) {
    if (random.below(2) == 0) continue;
    for (std::uint16_t& value : inputs.row(i)) value ^= 0x8000u;
    for (double& value : std::span(values).subspan(index(i * size.n), index(size.n))) value = -value;
  }

  const std::int64_t rows = std::min(size.m, kRefreshedRows);
  const std::int64_t first = random.below(size.m - rows + 1);
  const std::span<std::uint16_t> changed = inputs.x.subspan(index(first * size.k), index(rows * size.k));
  fill_each(changed, inputs.stream("refreshed rows"), NormalBf16{1});
  const std::vector<double> x = to_doubles(changed);
  const std::vector<ConstTensorView> views(tensors.begin(), tensors.end());
  write_rows(size, first, x, products(Weights(size, views), x), expected);
}

Comparison compare(const Shape& shape, const Case& of, std::span<const ConstTensorView>, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  return compare_output(outputs[0], expected.outputs[0], of.bounds,
                        {.scale = expected.scales[0],
                         .group_size = Sizes(shape).n,
                         .group_of = {},
                         .words = "0.016 |x_i| |w_j| / sqrt(K) + 2^-7 |ref|: weights rounded to bf16, fp32 sums, one "
                                  "rounding to bf16"});
}

}  // namespace kbh::w4a16
