// One decode step of lightning attention, in plain C++. To be read; the verdict never uses it.
//
// A head remembers all former tokens in one matrix s (128 x 128, fp32): row i belongs to channel i of the keys, column
// j to channel j of the values. A new token lets the memory fade, writes its value under its key, and reads with its
// query:
//
//     s_next = decay * s + k v^T
//     o      = q s_next
#pragma once

#include <cstdint>

#include <kbh/numbers.hpp>

namespace kbh::reference {

/// q, k, v: bf16 (B, H, 128). s: fp32 (B, H, 128, 128). decay: fp32 (H). Writes s_next, fp32 (B, H, 128, 128), and o,
/// bf16 (B, H, 128); the query is not scaled. Sums are fp32 in rising order of the rows; o is rounded once.
// B, H and D are the names of the field.
// NOLINTBEGIN(readability-identifier-naming)
inline void lightning_attention_step(std::int64_t B, std::int64_t H, const std::uint16_t* q, const std::uint16_t* k,
                                     const std::uint16_t* v, const float* s, const float* decay, float* s_next,
                                     std::uint16_t* o) {
  constexpr std::int64_t D = 128;
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t h = 0; h < H; ++h) {
      const std::int64_t token = (b * H + h) * D;  // where this head's q, k, v and o begin
      float read[D] = {};
      for (std::int64_t i = 0; i < D; ++i) {
        const float key = from_bf16(k[token + i]);
        const float query = from_bf16(q[token + i]);
        const std::int64_t row = (token + i) * D;
        for (std::int64_t j = 0; j < D; ++j) {
          s_next[row + j] = decay[h] * s[row + j] + key * from_bf16(v[token + j]);
          read[j] += query * s_next[row + j];
        }
      }
      for (std::int64_t j = 0; j < D; ++j) o[token + j] = to_bf16(read[j]);
    }
  }
}
// NOLINTEND(readability-identifier-naming)

}  // namespace kbh::reference
