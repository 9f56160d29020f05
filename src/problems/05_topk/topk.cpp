#include "problems/05_topk/topk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "problem/domain.hpp"
#include "problem/metadata.hpp"
#include "problems/05_topk/reference.hpp"

namespace kbh {
namespace topk {
namespace {

constexpr std::int64_t kMaxBatch = 4096;
constexpr std::int64_t kMaxN = std::int64_t{1} << 24;
constexpr std::int64_t kMaxK = 1024;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

Shape shape_of(std::int64_t batch, std::int64_t n, std::int64_t k) { return {{{"batch", batch}, {"n", n}, {"k", k}}}; }

std::vector<TensorSpec> tensors(const Shape& shape) {
  const Sizes size(shape);
  return {
      {"x", Role::input, DType::f32, {size.batch, size.n}},
      {"values", Role::output, DType::f32, {size.batch, size.k}},
      {"indices", Role::output, DType::i64, {size.batch, size.k}},
  };
}

Work work(const Shape& shape) {
  const Sizes size(shape);
  const auto inputs = static_cast<double>(size.batch * size.n);
  const auto winners = static_cast<double>(size.batch * size.k);
  const double flops = 4 * inputs;  // upstream's telemetry; the bytes bind
  const double bytes = 4 * inputs + 12 * winners;
  return {
      .flops = flops, .min_bytes = bytes, .upstream_flops = flops, .upstream_bytes = bytes, .flops_dtype = DType::f32};
}

std::optional<std::string> outside_domain(const Shape& shape) {
  const Sizes size(shape);
  if (auto wrong = outside_range("batch", size.batch, kMaxBatch)) return wrong;
  if (auto wrong = outside_range("n", size.n, kMaxN)) return wrong;
  if (auto wrong = outside_range("k", size.k, std::min(size.n, kMaxK))) return wrong;
  if (size.batch * size.n > kMaxElements)
    return fmt::format("batch * n is {}, expected at most {}", size.batch * size.n, kMaxElements);
  return std::nullopt;
}

/// Shapes that a kernel written for the listed one alone gets wrong: sizes that divide by nothing, the ends of k, other
/// batches. Few rows, so that a round over them costs less than the listed shape itself.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes size(listed);
  const std::int64_t few = std::min<std::int64_t>(size.batch, 3);
  const std::int64_t whole = size.k > 1 ? size.k : std::min<std::int64_t>(size.n, 37);
  // One row more in the bytes of the listed shape, or in 16 MiB where that is less.
  const std::int64_t elements = std::min<std::int64_t>(size.n * size.batch, 4 << 20);
  const std::int64_t shorter = std::max<std::int64_t>(1, (elements / (size.batch + 1) - 1) | 1);
  const std::vector<Shape> wanted = {
      shape_of(few, size.n + 1, size.k),
      shape_of(few, size.n - 1, std::min(size.k, size.n - 1)),
      shape_of(1, size.n, size.k),
      shape_of(size.batch + 1, shorter, std::min(size.k, shorter)),
      shape_of(few, whole, whole),
      shape_of(few, std::max<std::int64_t>(1, size.n * 3 / 8) | 1, 1),
      shape_of(few, size.n, std::max<std::int64_t>(1, size.k - 1)),
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
  reference::topk(tensors[0].as<float>().data(), outputs[0].as<float>().data(), outputs[1].as<std::int64_t>().data(),
                  size.batch, size.n, size.k);
}

}  // namespace
}  // namespace topk

Problem make_05_topk() {
  Problem problem = read_problem("05_topk");
  problem.tensors = topk::tensors;
  problem.work = topk::work;
  problem.outside_domain = topk::outside_domain;
  problem.neighbours = topk::neighbours;
  problem.oracle = topk::oracle;
  problem.compare = topk::compare;
  problem.honest = topk::honest;
  problem.cases = topk::cases();
  problem.mutants = topk::mutants();
  return problem;
}

}  // namespace kbh
