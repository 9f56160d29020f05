#include "problems/02_kda/kda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "problem/metadata.hpp"
#include "problems/02_kda/reference.hpp"

namespace kbh {
namespace kda {
namespace {

constexpr std::int64_t kMostTokens = 8192;
constexpr std::int64_t kMostRows = std::int64_t{1} << 20;

Shape shape_of(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t key_width,
               std::int64_t value_width) {
  return {{{"B", batch}, {"T", tokens}, {"H", heads}, {"K", key_width}, {"V", value_width}}};
}

std::vector<TensorSpec> tensors(const Shape& shape) {
  const Sizes size(shape);
  const std::vector<std::int64_t> keys = {size.batch, size.tokens, size.heads, size.key_width};
  const std::vector<std::int64_t> values = {size.batch, size.tokens, size.heads, size.value_width};
  return {
      {"q", Role::input, DType::bf16, keys},
      {"k", Role::input, DType::bf16, keys},
      {"v", Role::input, DType::bf16, values},
      {"g", Role::input, DType::f32, keys},
      {"beta", Role::input, DType::bf16, {size.batch, size.tokens, size.heads}},
      {"o", Role::output, DType::bf16, values},
  };
}

/// The matrix products that the chunk form cannot do without, per token, C = 64 tokens to a chunk:
///   keys and queries against the state, and the state's update         6 K V
///   the two triangles of token pairs (keys, queries against keys)      C K each
///   the two triangles against V columns (the solve, the queries)       C V each
/// Triangles count as triangles, and w = A (k e^G) is not needed: A (v - (k e^G) S) needs one product less. The plain
/// dense form, with w and whole squares, is 6 K V + 6 C K + 4 C V: 1.4 times as much for K = V = 128.
/// Upstream counts 4 K V + 256 K + 256 V, which happens to be the same number for K = V = 128.
Work work(const Shape& shape) {
  const Sizes size(shape);
  const auto rows = static_cast<double>(size.rows());
  const auto keys = static_cast<double>(size.key_width);
  const auto values = static_cast<double>(size.value_width);
  constexpr auto kTokens = static_cast<double>(kChunk);
  const double bytes = rows * (2 * (2 * keys + 2 * values) + 4 * keys + 2);
  return {.flops = rows * (6 * keys * values + 2 * kTokens * (keys + values)),
          .min_bytes = bytes,
          .upstream_flops = 4 * rows * (keys * values + kTokens * keys + kTokens * values),
          .upstream_bytes = bytes,
          .flops_dtype = DType::bf16};
}

std::optional<std::string> outside_width(std::string_view name, std::int64_t width) {
  if (width == 64 || width == 128) return std::nullopt;
  return fmt::format("{} is {}, expected 64 or 128", name, width);
}

std::optional<std::string> outside_domain(const Shape& shape) {
  const Sizes size(shape);
  if (size.tokens < kChunk || size.tokens > kMostTokens || size.tokens % kChunk != 0)
    return fmt::format("T is {}, expected a multiple of {} up to {}", size.tokens, kChunk, kMostTokens);
  if (size.batch < 1 || size.heads < 1 || size.batch > kMostRows || size.heads > kMostRows || size.rows() > kMostRows)
    return fmt::format("B * T * H is {} * {} * {}, expected B and H of at least 1, and at most {} together", size.batch,
                       size.tokens, size.heads, kMostRows);
  if (auto wrong = outside_width("K", size.key_width)) return wrong;
  return outside_width("V", size.value_width);
}

/// Shapes that a kernel written for the listed one alone gets wrong: an odd number of chunks (long and short), one
/// chunk, other batches and heads, narrow heads, K other than V.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes size(listed);
  const std::int64_t key = size.key_width;
  const std::int64_t value = size.value_width;
  const std::vector<Shape> wanted = {
      shape_of(1, size.tokens + kChunk, 1, key, value),
      shape_of(1, 3 * kChunk, size.heads + 1, key, value),
      shape_of(size.batch + 1, 2 * kChunk, size.heads, key, value),
      shape_of(1, kChunk, 1, key, value),
      shape_of(1, 5 * kChunk, 2, 64, 64),
      shape_of(2, 2 * kChunk, 1, 128, 64),
      shape_of(1, 4 * kChunk, 3, 64, 128),
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
  reference::kda({size.batch, size.tokens, size.heads, size.key_width, size.value_width},
                 tensors[kQ].as<std::uint16_t>().data(), tensors[kK].as<std::uint16_t>().data(),
                 tensors[kV].as<std::uint16_t>().data(), tensors[kG].as<float>().data(),
                 tensors[kBeta].as<std::uint16_t>().data(), outputs[0].as<std::uint16_t>().data());
}

}  // namespace
}  // namespace kda

Problem make_02_kda() {
  Problem problem = read_problem("02_kda");
  problem.tensors = kda::tensors;
  problem.work = kda::work;
  problem.outside_domain = kda::outside_domain;
  problem.neighbours = kda::neighbours;
  problem.oracle = kda::oracle;
  problem.refresh = kda::refresh;
  problem.compare = kda::compare;
  problem.honest = kda::honest;
  problem.cases = kda::cases();
  problem.mutants = kda::mutants();
  return problem;
}

}  // namespace kbh
