#include "problems/08_lightning_attention/lightning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "problem/domain.hpp"
#include "problem/metadata.hpp"
#include "problems/08_lightning_attention/reference.hpp"

namespace kbh {
namespace lightning {
namespace {

constexpr std::int64_t kMaxSequences = 4096;
constexpr std::int64_t kMaxHeads = 1024;
constexpr std::int64_t kMaxMemories = 16384;  // 1 GiB of memory

Shape shape_of(std::int64_t sequences, std::int64_t heads) { return {{{"B", sequences}, {"H", heads}}}; }

std::vector<TensorSpec> tensors(const Shape& shape) {
  const std::int64_t b = shape["B"];
  const std::int64_t h = shape["H"];
  return {
      {"q", Role::input, DType::bf16, {b, h, kD}},  {"k", Role::input, DType::bf16, {b, h, kD}},
      {"v", Role::input, DType::bf16, {b, h, kD}},  {"s", Role::input, DType::f32, {b, h, kD, kD}},
      {"decay", Role::input, DType::f32, {h}},      {"s_next", Role::output, DType::f32, {b, h, kD, kD}},
      {"o", Role::output, DType::bf16, {b, h, kD}},
  };
}

Work work(const Shape& shape) {
  const Sizes size(shape);
  const auto memories = static_cast<double>(size.memories());
  // Per element of the memory: decay * s, k * v, their sum; times q, added. The public benchmark left this problem a
  // stub, so there is no formula of its own to report beside.
  const double flops = 5 * memories * kMemory;
  const double bytes = memories * (2 * 4 * kMemory + 4 * 2 * kD) + 4 * static_cast<double>(size.heads);
  return {
      .flops = flops, .min_bytes = bytes, .upstream_flops = flops, .upstream_bytes = bytes, .flops_dtype = DType::f32};
}

std::optional<std::string> outside_domain(const Shape& shape) {
  const Sizes size(shape);
  if (auto wrong = outside_range("B", size.sequences, kMaxSequences)) return wrong;
  if (auto wrong = outside_range("H", size.heads, kMaxHeads)) return wrong;
  if (size.memories() > kMaxMemories)
    return fmt::format("B * H is {}, expected at most {}", size.memories(), kMaxMemories);
  return std::nullopt;
}

/// Few memories, and numbers of them that no group of 2, 4, 8 or 16 divides; heads that are no power of two.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes size(listed);
  const std::int64_t few = std::max<std::int64_t>(1, std::min<std::int64_t>(size.heads, 8));
  const std::vector<Shape> wanted = {
      shape_of(1, 1),       shape_of(1, few + 1), shape_of(std::min<std::int64_t>(size.sequences, 8) + 1, 1),
      shape_of(3, few - 1), shape_of(5, 3),       shape_of(1, std::min<std::int64_t>(size.heads + 1, 37)),
  };
  std::vector<Shape> shapes;
  for (const Shape& shape : wanted) {
    const bool known = shape == listed || std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
    if (!known && !outside_domain(shape)) shapes.push_back(shape);
  }
  return shapes;
}

void honest(const Shape& shape, std::span<const ConstTensorView> tensors, std::span<const TensorView> outputs) {
  const Sizes size(shape);
  reference::lightning_attention_step(size.sequences, size.heads, tensors[kQ].as<std::uint16_t>().data(),
                                      tensors[kK].as<std::uint16_t>().data(), tensors[kV].as<std::uint16_t>().data(),
                                      tensors[kS].as<float>().data(), tensors[kDecay].as<float>().data(),
                                      outputs[kSNext].as<float>().data(), outputs[kO].as<std::uint16_t>().data());
}

}  // namespace
}  // namespace lightning

Problem make_08_lightning_attention() {
  Problem problem = read_problem("08_lightning_attention");
  problem.tensors = lightning::tensors;
  problem.work = lightning::work;
  problem.outside_domain = lightning::outside_domain;
  problem.neighbours = lightning::neighbours;
  problem.oracle = lightning::oracle;
  problem.refresh = lightning::refresh;
  problem.compare = lightning::compare;
  problem.honest = [](const Shape& shape, std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
                      std::span<const std::vector<std::byte>>) { lightning::honest(shape, inputs, outputs); };
  problem.cases = lightning::cases();
  problem.mutants = lightning::mutants();
  return problem;
}

}  // namespace kbh
