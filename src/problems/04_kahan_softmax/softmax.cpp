#include "problems/04_kahan_softmax/softmax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "problem/metadata.hpp"
#include "problems/04_kahan_softmax/reference.hpp"

namespace kbh {
namespace softmax {
namespace {

constexpr std::int64_t kMaxBatch = 4096;
constexpr std::int64_t kMaxVocab = std::int64_t{1} << 22;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

Shape shape_of(std::int64_t batch, std::int64_t vocab, bool extreme) {
  return {{{"batch", batch}, {"vocab", vocab}, {"extreme", extreme ? 1 : 0}}};
}

std::vector<TensorSpec> tensors(const Shape& shape) {
  const Sizes size(shape);
  return {
      {"x", Role::input, DType::f32, {size.batch, size.vocab}},
      {"y", Role::output, DType::f32, {size.batch, size.vocab}},
  };
}

/// Per element: a maximum, a subtraction, an exponential, an addition, a multiplication. What the compensation costs is
/// the submission's business: accumulating in fp64 costs nothing more.
Work work(const Shape& shape) {
  const Sizes size(shape);
  const auto elements = static_cast<double>(size.batch * size.vocab);
  const double flops = 5 * elements;
  const double bytes = 8 * elements;
  return {
      .flops = flops, .min_bytes = bytes, .upstream_flops = flops, .upstream_bytes = bytes, .flops_dtype = DType::f32};
}

std::optional<std::string> outside_range(std::string_view name, std::int64_t value, std::int64_t least,
                                         std::int64_t most) {
  if (value >= least && value <= most) return std::nullopt;
  return fmt::format("{} is {}, expected {} to {}", name, value, least, most);
}

std::optional<std::string> outside_domain(const Shape& shape) {
  if (auto wrong = outside_range("batch", shape["batch"], 1, kMaxBatch)) return wrong;
  if (auto wrong = outside_range("vocab", shape["vocab"], 1, kMaxVocab)) return wrong;
  if (auto wrong = outside_range("extreme", shape["extreme"], 0, 1)) return wrong;
  if (const std::int64_t elements = shape["batch"] * shape["vocab"]; elements > kMaxElements)
    return fmt::format("batch * vocab is {}, expected at most {}", elements, kMaxElements);
  return std::nullopt;
}

/// Sizes that divide by nothing, other batches, the other distribution, rows shorter than any tile, and one long row:
/// the longer a row, the more a plain sum loses.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes size(listed);
  const std::int64_t few = std::min<std::int64_t>(size.batch, 2);
  const std::int64_t elements = std::min<std::int64_t>(size.batch * size.vocab, 1 << 19);
  const std::int64_t shorter = std::max<std::int64_t>(1, (elements / (size.batch + 1) - 1) | 1);
  const std::vector<Shape> wanted = {
      shape_of(few, size.vocab + 1, size.extreme),
      shape_of(few, size.vocab - 1, size.extreme),
      shape_of(1, size.vocab, !size.extreme),
      shape_of(size.batch + 1, shorter, size.extreme),
      shape_of(3, 37, size.extreme),
      shape_of(2, kHiddenVocab, false),
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
  reference::softmax(tensors[0].as<float>().data(), outputs[0].as<float>().data(), size.batch, size.vocab);
}

}  // namespace
}  // namespace softmax

Problem make_04_kahan_softmax() {
  Problem problem = read_problem("04_kahan_softmax");
  problem.tensors = softmax::tensors;
  problem.work = softmax::work;
  problem.outside_domain = softmax::outside_domain;
  problem.neighbours = softmax::neighbours;
  problem.oracle = softmax::oracle;
  problem.refresh = softmax::refresh;
  problem.compare = softmax::compare;
  problem.honest = softmax::honest;
  problem.cases = softmax::cases();
  problem.mutants = softmax::mutants();
  return problem;
}

}  // namespace kbh
