#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <kbh/numbers.hpp>

#include "base/parallel.hpp"
#include "problem/compare.hpp"
#include "problem/draw.hpp"
#include "problem/matrix.hpp"
#include "problems/06_moe_swiglu/data.hpp"
#include "problems/06_moe_swiglu/draws.hpp"
#include "problems/06_moe_swiglu/reference.hpp"

namespace kbh::moe {
namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }

/// bf16 rows of `from`, each `width` long, as doubles; row r begins at to[r * stride].
void widen(std::span<const std::uint16_t> from, std::int64_t width, double* to, std::int64_t stride) {
  const std::int64_t rows = std::ssize(from) / width;
  parallel_for(index(rows), index(1 + 65536 / width), [&](std::size_t begin, std::size_t end) {
    for (auto r = static_cast<std::int64_t>(begin); r < static_cast<std::int64_t>(end); ++r)
      for (std::int64_t i = 0; i < width; ++i)
        to[r * stride + i] = static_cast<double>(from_bf16(from[index(r * width + i)]));
  });
}

/// The tensors of one call, and room for one expert's operands in fp64.
class Layer {
 public:
  Layer(const Shape& shape, std::span<const ConstTensorView> tensors)
      : size_(shape),
        gate_(tensors[0].as<std::uint16_t>()),
        up_(tensors[1].as<std::uint16_t>()),
        hidden_(tensors[2].as<std::uint16_t>()),
        offsets_(tensors[3].as<std::int32_t>()),
        weights_(index(size_.width * 2 * size_.columns)) {}

  /// Rows [begin, end) of `out`, all of one expert: one product of its rows with gate and up side by side.
  void compute(std::int64_t expert, std::int64_t begin, std::int64_t end, std::span<double> out) {
    if (begin == end) return;
    load(expert);
    const std::int64_t rows = end - begin;
    const std::int64_t columns = size_.columns;
    x_.resize(index(rows * size_.width));
    product_.resize(index(rows * 2 * columns));
    widen(hidden_.subspan(index(begin * size_.width), x_.size()), size_.width, x_.data(), size_.width);
    multiply(rows, 2 * columns, size_.width, x_, weights_, product_);
    parallel_for(index(rows), index(1 + 4096 / columns), [&](std::size_t first, std::size_t last) {
      for (auto r = static_cast<std::int64_t>(first); r < static_cast<std::int64_t>(last); ++r) {
        const double* gate = product_.data() + r * 2 * columns;
        for (std::int64_t i = 0; i < columns; ++i)
          out[index((begin + r) * columns + i)] = silu(gate[i]) * gate[columns + i];
      }
    });
  }

  [[nodiscard]] std::int64_t expert_of(std::int64_t row) const {
    return std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<std::int32_t>(row)) - offsets_.begin() - 1;
  }
  [[nodiscard]] std::int64_t begin_of(std::int64_t expert) const { return offsets_[index(expert)]; }

 private:
  void load(std::int64_t expert) {
    if (expert == loaded_) return;
    loaded_ = expert;
    const auto elements = index(size_.width * size_.columns);
    const std::size_t first = index(expert) * elements;
    widen(gate_.subspan(first, elements), size_.columns, weights_.data(), 2 * size_.columns);
    widen(up_.subspan(first, elements), size_.columns, weights_.data() + size_.columns, 2 * size_.columns);
  }

  Sizes size_;
  std::span<const std::uint16_t> gate_;
  std::span<const std::uint16_t> up_;
  std::span<const std::uint16_t> hidden_;
  std::span<const std::int32_t> offsets_;
  std::int64_t loaded_ = -1;
  std::vector<double> weights_;  // (H, 2 I) of the expert loaded last
  std::vector<double> x_;
  std::vector<double> product_;
};

std::vector<double> scales_of(const Sizes& size, std::span<const double> out) {
  return rms_scales(out, size.columns, size.rows() * size.columns);
}

}  // namespace

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  Layer layer(shape, tensors);
  std::vector<double> out(index(size.rows() * size.columns));
  for (std::int64_t e = 0; e < size.experts; ++e) layer.compute(e, layer.begin_of(e), layer.begin_of(e + 1), out);
  std::vector<double> scales = scales_of(size, out);
  return {{std::move(out)}, {std::move(scales)}};
}

void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected) {
  constexpr int kRows = 8;
  const Inputs in(key, tensors);
  const std::uint64_t stream = key.stream("hidden");
  Random random = in.random("rows");
  std::set<std::int64_t> rows;  // ascending, so that an expert's weights are widened once
  for (int i = 0; i < kRows; ++i) rows.insert(random.below(in.size.rows()));

  Layer layer(key.shape, std::vector<ConstTensorView>(tensors.begin(), tensors.end()));
  for (const std::int64_t r : rows) {
    for (std::int64_t k = 0; k < in.size.width; ++k) {
      const auto element = static_cast<std::uint64_t>(r * in.size.width + k);
      in.row(r)[index(k)] = NormalBf16{kHiddenScale}(philox::words(stream, element), element);
    }
    layer.compute(layer.expert_of(r), r, r + 1, expected.outputs[0]);
  }
  expected.scales[0] = scales_of(in.size, expected.outputs[0]);
}

Comparison compare(const Shape& shape, const Case& of, std::span<const ConstTensorView>, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  const Sizes size(shape);
  OutputRule rule;
  rule.scale = expected.scales[0];
  rule.group_size = size.columns;
  rule.words = of.bounds.a == 0
                   ? "all sums are integers: one rounding to bf16, 2^-8 of the element, is all that is left"
                   : "0.01 of the row's rms, or of the tensor's / 16 where that is more, + 2^-6 of the "
                     "element: gate, up, silu and out may each be rounded to bf16";
  return compare_output(outputs[0], expected.outputs[0], of.bounds, rule);
}

void honest(const Shape& shape, std::span<const ConstTensorView> tensors, std::span<const TensorView> outputs) {
  const Sizes size(shape);
  reference::moe_swiglu({.experts = size.experts, .width = size.width, .columns = size.columns},
                        tensors[0].as<std::uint16_t>().data(), tensors[1].as<std::uint16_t>().data(),
                        tensors[2].as<std::uint16_t>().data(), tensors[3].as<std::int32_t>().data(),
                        outputs[0].as<std::uint16_t>().data());
}

}  // namespace kbh::moe
