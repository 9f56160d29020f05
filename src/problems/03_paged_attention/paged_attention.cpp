#include "problems/03_paged_attention/paged_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "problem/compare.hpp"
#include "problem/domain.hpp"
#include "problem/metadata.hpp"
#include "problems/03_paged_attention/reference.hpp"

namespace kbh {
namespace paged_attention {
namespace {

constexpr std::int64_t kMaxBatch = 1024;
constexpr std::int64_t kMaxKvHeads = 64;
constexpr std::int64_t kMaxGroup = 16;
constexpr std::int64_t kMaxSeqLen = std::int64_t{1} << 18;
constexpr std::int64_t kMaxCacheElements = std::int64_t{1} << 32;

Shape shape_of(std::int64_t batch, std::int64_t num_heads, std::int64_t num_kv_heads, std::int64_t head_dim,
               std::int64_t seq_len, std::int64_t page_size) {
  return {{{"batch", batch},
           {"num_heads", num_heads},
           {"num_kv_heads", num_kv_heads},
           {"head_dim", head_dim},
           {"seq_len", seq_len},
           {"page_size", page_size}}};
}

std::vector<TensorSpec> tensors(const Shape& shape) {
  const Sizes size(shape);
  return {
      {"query", Role::input, DType::bf16, {size.batch, size.num_heads, size.head_dim}},
      {"kv_cache",
       Role::input,
       DType::bf16,
       {size.total_pages(), size.page_size, size.num_kv_heads, 2 * size.head_dim}},
      {"block_table", Role::input, DType::i32, {size.batch, size.pages_per_seq()}},
      {"seq_lens", Role::input, DType::i32, {size.batch}},
      {"out", Role::output, DType::bf16, {size.batch, size.num_heads, size.head_dim}},
  };
}

/// Of the nominal draw, the one that is timed: every sequence is seq_len long. Each byte of a used page counts once,
/// slots beyond the length not at all; two products of 2 flops for each query head, token and dimension (the softmax is
/// below 1 % of that).
Work work(const Shape& shape) {
  const Sizes size(shape);
  const auto tokens = static_cast<double>(size.batch * size.seq_len);
  const auto heads = static_cast<double>(size.batch * size.num_heads * size.head_dim);
  const auto table = static_cast<double>(size.batch * (size.pages_per_seq() + 1));
  const double cache_bytes = tokens * static_cast<double>(size.num_kv_heads * 2 * size.head_dim) * 2;
  const double flops = 4 * heads * static_cast<double>(size.seq_len);
  return {.flops = flops,
          .min_bytes = cache_bytes + 4 * heads + 4 * table,
          .upstream_flops = flops,
          .upstream_bytes = cache_bytes + 4 * heads,
          .flops_dtype = DType::bf16};
}

std::optional<std::string> outside_domain(const Shape& shape) {
  const Sizes size(shape);
  if (auto wrong = outside_range("batch", size.batch, kMaxBatch)) return wrong;
  if (auto wrong = outside_range("num_kv_heads", size.num_kv_heads, kMaxKvHeads)) return wrong;
  if (auto wrong = outside_range("num_heads", size.num_heads, kMaxGroup * size.num_kv_heads)) return wrong;
  if (size.num_heads % size.num_kv_heads != 0)
    return fmt::format("num_heads is {}, expected a multiple of num_kv_heads = {}", size.num_heads, size.num_kv_heads);
  if (size.head_dim != 64 && size.head_dim != 128)
    return fmt::format("head_dim is {}, expected 64 or 128", size.head_dim);
  if (size.page_size != 16 && size.page_size != 32)
    return fmt::format("page_size is {}, expected 16 or 32", size.page_size);
  if (auto wrong = outside_range("seq_len", size.seq_len, kMaxSeqLen)) return wrong;
  const std::int64_t elements = size.total_pages() * size.page_size * size.num_kv_heads * 2 * size.head_dim;
  if (elements > kMaxCacheElements)
    return fmt::format("kv_cache has {} elements, expected at most {}", elements, kMaxCacheElements);
  return std::nullopt;
}

/// Shapes that a kernel written for the listed one alone gets wrong: capacities beside a page's edge, one sequence, one
/// more, other groups and pages. Few sequences, so that a round over them costs less than the listed shape itself.
std::vector<Shape> neighbours(const Shape& listed) {
  const Sizes s(listed);
  const std::int64_t few = std::min<std::int64_t>(s.batch, 3);
  const std::int64_t odd_group = s.group() > 3 ? s.group() - 1 : s.group() + 1;
  const std::int64_t short_len = std::max<std::int64_t>(1, s.seq_len / (2 * s.batch) | 1);
  const std::vector<Shape> wanted = {
      shape_of(1, s.num_heads, s.num_kv_heads, s.head_dim, s.seq_len, s.page_size),
      shape_of(few, s.num_heads, s.num_kv_heads, s.head_dim, s.seq_len + 1, s.page_size),
      shape_of(few, s.num_heads, s.num_kv_heads, s.head_dim, std::max<std::int64_t>(1, s.seq_len - 1), s.page_size),
      shape_of(s.batch + 1, s.num_heads, s.num_kv_heads, s.head_dim, short_len, s.page_size),
      shape_of(few, odd_group * s.num_kv_heads, s.num_kv_heads, s.head_dim, s.seq_len / 2 + 1, s.page_size),
      shape_of(few, s.group() * (s.num_kv_heads + 1), s.num_kv_heads + 1, s.head_dim, s.seq_len / 2 + 3,
               s.page_size == 16 ? 32 : 16),
      shape_of(few, s.num_heads, s.num_kv_heads, s.head_dim, 1, s.page_size),
  };
  std::vector<Shape> shapes;
  for (const Shape& shape : wanted) {
    const bool known = shape == listed || std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
    if (!known && !outside_domain(shape)) shapes.push_back(shape);
  }
  return shapes;
}

/// Scale: rms of the row (one query head), at least 1/16 of the rms of its sequence. Sequences differ in length, and so
/// in size; the heads of one do not.
Comparison compare(const Shape& shape, const Case& c, std::span<const ConstTensorView>, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  const Sizes size(shape);
  const std::span<const double> wanted = expected.outputs[0];
  expect(wanted.size() == index(size.batch * size.num_heads * size.head_dim), "the expected values are of this shape");
  const std::vector<double> scales =
      c.bounds.a > 0 ? rms_scales(wanted, size.head_dim, size.num_heads * size.head_dim) : std::vector<double>{};
  OutputRule rule;
  rule.scale = scales;
  rule.group_size = size.head_dim;
  rule.words = fmt::format(
      "{:g} x rms of the row + {:g} x |expected|: roundings to bf16 of the weights or partial sums "
      "and of the output, twice what honest kernels need",
      c.bounds.a, c.bounds.r);
  return compare_output(outputs[0], wanted, c.bounds, rule);
}

void honest(const Shape& shape, std::span<const ConstTensorView> given, std::span<const TensorView> outputs,
            std::span<const std::vector<std::byte>>) {
  const Sizes size(shape);
  const Inputs in = inputs_of(given);
  reference::paged_attention(size.batch, size.num_heads, size.num_kv_heads, size.head_dim, size.pages_per_seq(),
                             size.page_size, in.query.data(), in.cache.data(), in.block_table.data(),
                             in.seq_lens.data(), outputs[0].as<std::uint16_t>().data());
}

}  // namespace

Inputs inputs_of(std::span<const ConstTensorView> tensors) {
  return {tensors[0].as<std::uint16_t>(), tensors[1].as<std::uint16_t>(), tensors[2].as<std::int32_t>(),
          tensors[3].as<std::int32_t>()};
}

MutableInputs mutable_inputs_of(std::span<const TensorView> tensors) {
  return {tensors[0].as<std::uint16_t>(), tensors[1].as<std::uint16_t>(), tensors[2].as<std::int32_t>(),
          tensors[3].as<std::int32_t>()};
}

}  // namespace paged_attention

Problem make_03_paged_attention() {
  Problem problem = read_problem("03_paged_attention");
  problem.tensors = paged_attention::tensors;
  problem.work = paged_attention::work;
  problem.outside_domain = paged_attention::outside_domain;
  problem.neighbours = paged_attention::neighbours;
  problem.oracle = paged_attention::oracle;
  problem.refresh = paged_attention::refresh;
  problem.compare = paged_attention::compare;
  problem.honest = paged_attention::honest;
  problem.cases = paged_attention::cases();
  problem.mutants = paged_attention::mutants();
  return problem;
}

}  // namespace kbh
