#include "problems/07_w4a16_gemm/w4a16.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "problem/metadata.hpp"
#include "problems/07_w4a16_gemm/reference.hpp"

namespace kbh {
namespace w4a16 {
namespace {

constexpr std::int64_t kMaxM = 4096;
constexpr std::int64_t kMaxN = 65536;
constexpr std::int64_t kMaxK = 32768;
constexpr std::int64_t kMaxWeights = std::int64_t{1} << 29;

Shape shape_of(std::int64_t m, std::int64_t n, std::int64_t k) { return {{{"M", m}, {"N", n}, {"K", k}}}; }

std::vector<TensorSpec> tensors(const Shape& shape) {
  const Sizes size(shape);
  return {
      {"w_q", Role::state, DType::u8, {size.k / 2, size.n}},
      {"scales", Role::state, DType::bf16, {size.groups(), size.n}},
      {"zeros", Role::state, DType::bf16, {size.groups(), size.n}},
      {"x", Role::input, DType::bf16, {size.m, size.k}},
      {"out", Role::output, DType::bf16, {size.m, size.n}},
  };
}

Work work(const Shape& shape) {
  const Sizes size(shape);
  const auto m = static_cast<double>(size.m);
  const auto n = static_cast<double>(size.n);
  const auto k = static_cast<double>(size.k);
  const double flops = 2 * m * n * k;
  const double bytes = 2 * m * k + k * n / 2 + 4 * (k / kGroup) * n + 2 * m * n;
  return {
      .flops = flops, .min_bytes = bytes, .upstream_flops = flops, .upstream_bytes = bytes, .flops_dtype = DType::bf16};
}

std::optional<std::string> outside_range(std::string_view name, std::int64_t value, std::int64_t unit,
                                         std::int64_t most) {
  if (value >= unit && value <= most && value % unit == 0) return std::nullopt;
  if (unit == 1) return fmt::format("{} is {}, expected 1 to {}", name, value, most);
  return fmt::format("{} is {}, expected a multiple of {} up to {}", name, value, unit, most);
}

std::optional<std::string> outside_domain(const Shape& shape) {
  const Sizes size(shape);
  if (auto wrong = outside_range("M", size.m, 1, kMaxM)) return wrong;
  if (auto wrong = outside_range("N", size.n, kColumnUnit, kMaxN)) return wrong;
  if (auto wrong = outside_range("K", size.k, kGroup, kMaxK)) return wrong;
  if (size.n * size.k > kMaxWeights)
    return fmt::format("N * K is {}, expected at most {}", size.n * size.k, kMaxWeights);
  return std::nullopt;
}

/// One row more or less, a ragged edge of columns, an odd number of groups, one row, one group. Fewer columns than
/// listed, so that a round over them costs less than the listed shape itself.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes size(listed);
  const std::int64_t n = std::min<std::int64_t>(size.n, size.m > 64 ? 512 : 1024);
  const std::vector<Shape> wanted = {
      shape_of(size.m + 1, n, size.k),           shape_of(size.m - 1, n, size.k),
      shape_of(size.m, n + kColumnUnit, size.k), shape_of(size.m, n - kColumnUnit, size.k + kGroup),
      shape_of(size.m, n, size.k - kGroup),      shape_of(size.m == 1 ? 7 : 1, n, size.k),
      shape_of(size.m, 3 * kColumnUnit, kGroup),
  };
  std::vector<Shape> shapes;
  for (const Shape& shape : wanted) {
    const bool known = shape == listed || std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
    if (!known && !outside_domain(shape)) shapes.push_back(shape);
  }
  return shapes;
}

void honest(const Shape& shape, std::span<const ConstTensorView> tensors, std::span<const TensorView> outputs,
            std::span<const std::vector<std::byte>>) {
  const Sizes size(shape);
  reference::w4a16::gemm(size.m, size.n, size.k, tensors[0].as<std::uint8_t>(), tensors[1].as<std::uint16_t>(),
                         tensors[2].as<std::uint16_t>(), tensors[3].as<std::uint16_t>(),
                         outputs[0].as<std::uint16_t>());
}

}  // namespace
}  // namespace w4a16

Problem make_07_w4a16_gemm() {
  Problem problem = read_problem("07_w4a16_gemm");
  problem.tensors = w4a16::tensors;
  problem.work = w4a16::work;
  problem.outside_domain = w4a16::outside_domain;
  problem.neighbours = w4a16::neighbours;
  problem.oracle = w4a16::oracle;
  problem.refresh = w4a16::refresh;
  problem.compare = w4a16::compare;
  problem.honest = w4a16::honest;
  problem.cases = w4a16::cases();
  problem.mutants = w4a16::mutants();
  return problem;
}

}  // namespace kbh
