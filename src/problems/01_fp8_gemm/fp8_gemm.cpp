#include "problems/01_fp8_gemm/fp8_gemm.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "problem/domain.hpp"
#include "problem/metadata.hpp"
#include "problems/01_fp8_gemm/reference.hpp"

namespace kbh {
namespace fp8_gemm {
namespace {

constexpr std::int64_t kMaxRows = 65536;
// The exact cases stay below 2^14 in every partial sum up to here (fills.cpp), and the bounds are measured up to 8192.
constexpr std::int64_t kMaxK = 16384;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

Shape shape_of(std::int64_t m, std::int64_t n, std::int64_t k) { return {{{"M", m}, {"N", n}, {"K", k}}}; }

std::vector<TensorSpec> tensors(const Shape& shape) {
  const Sizes size(shape);
  return {
      {"weight", Role::state, DType::e4m3, {size.n, size.k}},
      {"weight_scale", Role::state, DType::f32, {size.n}},
      {"x", Role::input, DType::e4m3, {size.m, size.k}},
      {"out", Role::output, DType::bf16, {size.m, size.n}},
  };
}

Work work(const Shape& shape) {
  const Sizes size(shape);
  const auto m = static_cast<double>(size.m);
  const auto n = static_cast<double>(size.n);
  const auto k = static_cast<double>(size.k);
  const double flops = 2 * m * n * k;
  const double upstream_bytes = m * k + k * n + 2 * m * n;  // forgets the scales
  return {.flops = flops,
          .min_bytes = upstream_bytes + 4 * n,
          .upstream_flops = flops,
          .upstream_bytes = upstream_bytes,
          .flops_dtype = DType::e4m3};
}

std::optional<std::string> outside_domain(const Shape& shape) {
  const Sizes size(shape);
  if (auto wrong = outside_range("M", size.m, kMaxRows)) return wrong;
  if (auto wrong = outside_range("N", size.n, kMaxRows)) return wrong;
  if (auto wrong = outside_range("K", size.k, kMaxK)) return wrong;
  if (auto wrong = outside_range("M * K", size.m * size.k, kMaxElements)) return wrong;
  if (auto wrong = outside_range("N * K", size.n * size.k, kMaxElements)) return wrong;
  return outside_range("M * N", size.m * size.n, kMaxElements);
}

/// Sizes that divide by nothing, one row, one column of K: what a kernel made of whole tiles gets wrong. Each costs a
/// small part of the listed shape.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes size(listed);
  const std::int64_t rows = std::min<std::int64_t>(size.m, 17);
  const std::int64_t columns = std::min<std::int64_t>(size.n, 137);
  const std::vector<Shape> wanted = {
      shape_of(1, size.n, size.k),        shape_of(rows, size.n + 1, size.k),  shape_of(size.m + 1, columns, size.k),
      shape_of(size.m - 1, columns, 33),  shape_of(rows, columns, size.k + 1), shape_of(rows, columns - 1, size.k - 1),
      shape_of(rows + 1, columns + 1, 1),
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
  const Operands<ConstTensorView> of{tensors};
  reference::fp8_gemm(size.m, size.n, size.k, of.x().data(), of.weight().data(), of.weight_scale().data(),
                      outputs[0].as<std::uint16_t>().data());
}

}  // namespace
}  // namespace fp8_gemm

Problem make_01_fp8_gemm() {
  Problem problem = read_problem("01_fp8_gemm");
  problem.tensors = fp8_gemm::tensors;
  problem.work = fp8_gemm::work;
  problem.outside_domain = fp8_gemm::outside_domain;
  problem.neighbours = fp8_gemm::neighbours;
  problem.oracle = fp8_gemm::oracle;
  problem.refresh = fp8_gemm::refresh;
  problem.compare = fp8_gemm::compare;
  problem.honest = fp8_gemm::honest;
  problem.cases = fp8_gemm::cases();
  problem.mutants = fp8_gemm::mutants();
  return problem;
}

}  // namespace kbh
