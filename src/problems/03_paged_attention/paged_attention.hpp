// 03_paged_attention: one decode step of attention over a paged KV cache. One file per concept: paged_attention.cpp
// (tensors, work, domain, comparison), oracle.cpp, refresh.cpp, tables.cpp and values.cpp (draws), cases.cpp,
// mutants.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::paged_attention {

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Sizes {
  std::int64_t batch;
  std::int64_t num_heads;
  std::int64_t num_kv_heads;
  std::int64_t head_dim;
  std::int64_t seq_len;  // capacity: no sequence is longer
  std::int64_t page_size;

  explicit Sizes(const Shape& shape)
      : batch(shape["batch"]),
        num_heads(shape["num_heads"]),
        num_kv_heads(shape["num_kv_heads"]),
        head_dim(shape["head_dim"]),
        seq_len(shape["seq_len"]),
        page_size(shape["page_size"]) {}

  /// Query heads that read the same head of the cache.
  [[nodiscard]] std::int64_t group() const { return num_heads / num_kv_heads; }
  [[nodiscard]] std::int64_t pages_per_seq() const { return pages_of(seq_len); }
  /// Eight pages (or more) belong to nobody, as upstream draws it.
  [[nodiscard]] std::int64_t total_pages() const {
    const std::int64_t wanted = batch * pages_per_seq() + 8;
    return wanted < 64 ? 64 : wanted;
  }
  [[nodiscard]] std::int64_t pages_of(std::int64_t length) const { return (length + page_size - 1) / page_size; }
  /// Where the row [K | V] of a token begins in the cache.
  [[nodiscard]] std::size_t row(std::int64_t page, std::int64_t slot, std::int64_t kv_head) const {
    return index(((page * page_size + slot) * num_kv_heads + kv_head) * 2 * head_dim);
  }
};

/// The inputs of one call; `Word` and `Int` are const where they are only read.
template <typename Word, typename Int>
struct InputsOf {
  std::span<Word> query;       // (batch, num_heads, head_dim)
  std::span<Word> cache;       // (total_pages, page_size, num_kv_heads, 2 * head_dim)
  std::span<Int> block_table;  // (batch, pages_per_seq)
  std::span<Int> seq_lens;     // (batch)
};
using Inputs = InputsOf<const std::uint16_t, const std::int32_t>;
using MutableInputs = InputsOf<std::uint16_t, std::int32_t>;

Inputs inputs_of(std::span<const ConstTensorView> tensors);
MutableInputs mutable_inputs_of(std::span<const TensorView> tensors);

/// outputs[0]: softmax(q K^T / sqrt(head_dim)) V in fp64, (batch, num_heads, head_dim). Reads valid slots only.
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// The oracle's answer for the query heads of one head of the cache in one sequence: (group, head_dim).
void attend_group(const Sizes& size, const Inputs& inputs, std::int64_t sequence, std::int64_t kv_head,
                  std::span<double> out);

/// Problem::refresh: new queries and some new tokens for a few secret pairs of sequence and head of the cache.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::paged_attention
