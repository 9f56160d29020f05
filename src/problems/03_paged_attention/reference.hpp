// One decode step of attention over a paged cache, to be read: what `out` must hold, up to roundings.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::reference {

/// query        bf16  (batch, num_heads, head_dim)
/// kv_cache     bf16  (pages, page_size, num_kv_heads, 2 * head_dim): the key of a token, then its value
/// block_table  int32 (batch, pages_per_seq): page number of the sequence's tokens 0 .. page_size-1, of the next, ...
/// seq_lens     int32 (batch): tokens of each sequence, at least 1; slots beyond them may hold anything
/// out          bf16  (batch, num_heads, head_dim)
inline void paged_attention(std::int64_t batch, std::int64_t num_heads, std::int64_t num_kv_heads,
                            std::int64_t head_dim, std::int64_t pages_per_seq, std::int64_t page_size,
                            const std::uint16_t* query, const std::uint16_t* kv_cache, const std::int32_t* block_table,
                            const std::int32_t* seq_lens, std::uint16_t* out) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const std::int64_t group = num_heads / num_kv_heads;  // neighbouring query heads share a head of the cache
  std::vector<float> weights;
  std::vector<float> sums(static_cast<std::size_t>(head_dim));

  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    const std::int64_t length = seq_lens[sequence];
    for (std::int64_t head = 0; head < num_heads; ++head) {
      const std::int64_t row = sequence * num_heads + head;
      const std::uint16_t* q = query + row * head_dim;
      const auto token = [&](std::int64_t t) {
        const std::int64_t page = block_table[sequence * pages_per_seq + t / page_size];
        return kv_cache + ((page * page_size + t % page_size) * num_kv_heads + head / group) * 2 * head_dim;
      };

      // Scores, and the largest: e^(score - largest) cannot overflow.
      weights.assign(static_cast<std::size_t>(length), 0.0f);
      float largest = -INFINITY;
      for (std::int64_t t = 0; t < length; ++t) {
        const std::uint16_t* key = token(t);
        float dot = 0;
        for (std::int64_t d = 0; d < head_dim; ++d) dot += from_bf16(q[d]) * from_bf16(key[d]);
        weights[static_cast<std::size_t>(t)] = dot * scale;
        largest = std::fmax(largest, dot * scale);
      }

      float total = 0;
      sums.assign(sums.size(), 0.0f);
      for (std::int64_t t = 0; t < length; ++t) {
        const float weight = std::exp(weights[static_cast<std::size_t>(t)] - largest);
        const std::uint16_t* value = token(t) + head_dim;
        total += weight;
        for (std::int64_t d = 0; d < head_dim; ++d) sums[static_cast<std::size_t>(d)] += weight * from_bf16(value[d]);
      }
      for (std::int64_t d = 0; d < head_dim; ++d)
        out[row * head_dim + d] = to_bf16(sums[static_cast<std::size_t>(d)] / total);
    }
  }
}

}  // namespace kbh::reference
