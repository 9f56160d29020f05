#include "problems/06_moe_swiglu/moe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "problem/domain.hpp"
#include "problem/metadata.hpp"

namespace kbh {
namespace moe {
namespace {

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 17;
constexpr std::int64_t kMaxWidth = 8192;
constexpr std::int64_t kMaxExperts = 512;
constexpr std::int64_t kMaxCopies = 16;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 20;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;  // of hidden, of out, of one weight tensor
// Rows of all matrices then begin at multiples of 16 bytes, which every model has and vector loads and TMA need.
constexpr std::int64_t kWidthUnit = 8;

Shape shape_of(std::int64_t tokens, std::int64_t width, std::int64_t columns, std::int64_t experts,
               std::int64_t copies) {
  return {{{"T_total", tokens}, {"H", width}, {"I", columns}, {"E", experts}, {"K", copies}}};
}

std::vector<TensorSpec> tensors(const Shape& shape) {
  const Sizes s(shape);
  return {
      {"W_gate", Role::state, DType::bf16, {s.experts, s.width, s.columns}},
      {"W_up", Role::state, DType::bf16, {s.experts, s.width, s.columns}},
      {"hidden", Role::input, DType::bf16, {s.rows(), s.width}},
      {"expert_offsets", Role::input, DType::i32, {s.experts + 1}},
      {"out", Role::output, DType::bf16, {s.rows(), s.columns}},
  };
}

Work work(const Shape& shape) {
  const Sizes s(shape);
  const auto tokens = static_cast<double>(s.tokens);
  const auto rows = static_cast<double>(s.rows());
  const auto width = static_cast<double>(s.width);
  const auto columns = static_cast<double>(s.columns);
  const auto experts = static_cast<double>(s.experts);
  // Nominal routing gives every expert rows, so all weights are read. The activation, a few operations for each of the
  // rows * I elements, is below 1 / H of the products and not counted.
  const double bytes = 2 * rows * width + 4 * experts * width * columns + 2 * rows * columns;
  return {.flops = 4 * rows * width * columns,
          .min_bytes = bytes + 4 * (experts + 1),
          .upstream_flops = 4 * tokens * width * columns,  // leaves out the K copies that are really multiplied
          .upstream_bytes = bytes,
          .flops_dtype = DType::bf16};
}

std::optional<std::string> outside_width(std::string_view name, std::int64_t value) {
  if (value >= kWidthUnit && value <= kMaxWidth && value % kWidthUnit == 0) return std::nullopt;
  return fmt::format("{} is {}, expected a multiple of {} from {} to {}", name, value, kWidthUnit, kWidthUnit,
                     kMaxWidth);
}

std::optional<std::string> outside_domain(const Shape& shape) {
  const Sizes s(shape);
  if (auto wrong = outside_range("T_total", s.tokens, kMaxTokens)) return wrong;
  if (auto wrong = outside_width("H", s.width)) return wrong;
  if (auto wrong = outside_width("I", s.columns)) return wrong;
  if (auto wrong = outside_range("E", s.experts, kMaxExperts)) return wrong;
  if (auto wrong = outside_range("K", s.copies, std::min(s.experts, kMaxCopies))) return wrong;
  if (auto wrong = outside_range("T_total * K", s.rows(), kMaxRows)) return wrong;
  if (auto wrong = outside_range("T_total * K * max(H, I)", s.rows() * std::max(s.width, s.columns), kMaxElements))
    return wrong;
  return outside_range("E * H * I", s.experts * s.width * s.columns, kMaxElements);
}

/// Shapes that a kernel written for the listed one alone gets wrong: H and I beside a multiple of 16, a single token, a
/// single expert, an odd number of experts, few rows. Few experts, so that all together cost less than the listed
/// shape.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes s(listed);
  const auto copies = [&](std::int64_t experts) { return std::min(s.copies, experts); };
  const std::int64_t some_experts = std::min<std::int64_t>(s.experts + 1, 9);
  const std::vector<Shape> wanted = {
      shape_of(37, s.width + 8, s.columns, 5, copies(5)),
      shape_of(29, s.width - 8, s.columns, 7, copies(7)),
      shape_of(53, s.width, s.columns + 8, 3, copies(3)),
      shape_of(31, s.width, s.columns - 8, 6, copies(6)),
      shape_of(1, s.width, s.columns, some_experts, copies(some_experts)),
      shape_of(131, s.width, s.columns, 1, 1),
      shape_of(std::min<std::int64_t>(s.tokens + 1, 257), std::min<std::int64_t>(s.width, 72),
               std::min<std::int64_t>(s.columns, 40), std::min<std::int64_t>(s.experts + 1, 33), 1),
  };
  std::vector<Shape> shapes;
  for (const Shape& shape : wanted) {
    const bool known = shape == listed || std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
    if (!known && !outside_domain(shape)) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace
}  // namespace moe

Problem make_06_moe_swiglu() {
  Problem problem = read_problem("06_moe_swiglu");
  problem.tensors = moe::tensors;
  problem.work = moe::work;
  problem.outside_domain = moe::outside_domain;
  problem.neighbours = moe::neighbours;
  problem.oracle = moe::oracle;
  problem.refresh = moe::refresh;
  problem.compare = moe::compare;
  problem.honest = [](const Shape& shape, std::span<const ConstTensorView> tensors, std::span<const TensorView> outputs,
                      std::span<const std::vector<std::byte>>) { moe::honest(shape, tensors, outputs); };
  problem.cases = moe::cases();
  problem.mutants = moe::mutants();
  return problem;
}

}  // namespace kbh
