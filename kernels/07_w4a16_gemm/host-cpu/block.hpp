// The weights as the kernel reads them, and the product of some rows of x with one block of them.
#pragma once

#if defined(__AVX512BF16__) && defined(__AVX512BW__)
#include <immintrin.h>
#define W4A16_BF16_DOT 1
#endif

#include <cstdint>
#include <cstring>

#include <kbh/numbers.hpp>

namespace w4a16 {

constexpr int64_t kGroup = 128;    // of K, with one scale and one zero point
constexpr int64_t kColumns = 16;   // 32-bit lanes of a 512-bit register
constexpr int64_t kLines = 16;     // cache lines of levels in a block: each is 8 k of every column
constexpr int64_t kMostRows = 16;  // rows of x whose sums stay in registers

/// One group of 16 columns: 17 cache lines, as many bytes as it has in w_q, scales and zeros.
/// Bits 4t .. 4t+3 of levels[l][j] are q(8l + 2t, j), bits 16+4t .. 19+4t are q(8l + 2t + 1, j): a shift and a table
/// look-up by the low bits of each 16-bit half turn a line into the bf16 pairs that a dot product wants.
struct alignas(64) Block {
  uint32_t levels[kLines][kColumns];
  uint16_t scales[kColumns];
  uint16_t zeros[kColumns];
};
static_assert(sizeof(Block) == 17 * 64);

/// Up to 16 rows of x as they are read: pairs of neighbours along K, each of all rows side by side, so that one
/// register and a constant address them all. And their sums over each group.
struct Rows {
  const uint32_t* pairs;  // (K/2, rows): even k in the lower half
  const float* sums;      // (K/128, rows)
};

/// fp32 sums of up to 16 rows and 16 columns.
using Sums = float[kMostRows][kColumns];

#ifdef W4A16_BF16_DOT

inline __m512 floats_of(const uint16_t* bf16) {
  const __m256i bits = _mm256_load_si256(reinterpret_cast<const __m256i*>(bf16));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// bf16 0 .. 15, twice: an index takes five bits, and the fifth belongs to the next level.
inline __m512i level_table() {
  alignas(64) uint16_t table[32];
  for (int i = 0; i < 32; ++i) table[i] = kbh::to_bf16(static_cast<float>(i % 16));
  return _mm512_load_si512(table);
}

/// 1 KiB ahead the next lines are called into the second-level cache.
inline __m512i load_line(const Block& block, int64_t line) {
  const uint32_t* levels = block.levels[line];
  _mm_prefetch(reinterpret_cast<const char*>(levels) + 1024, _MM_HINT_T1);
  return _mm512_load_si512(levels);
}

/// sums += scale * (sum of x q - zero * sum of x): levels are exact in bf16, so nothing is rounded before fp32.
template <int kRows>
void add_block(const Block& block, const Rows& rows, int64_t group, Sums& sums) {
  constexpr int kChains = kRows == 1  ? 8
                          : kRows < 4 ? 4
                          : kRows < 8 ? 2
                                      : 1;  // a dot product takes 6 cycles, one starts in each
  const __m512i table = level_table();
  __m512 dot[kRows][kChains];
  for (auto& row : dot)
    for (__m512& chain : row) chain = _mm512_setzero_ps();
  const uint32_t* pairs = rows.pairs + group * (kGroup / 2) * kRows;
  for (int64_t line = 0; line < kLines; line += 2, pairs += 8 * kRows) {
    const __m512i levels[2] = {load_line(block, line), load_line(block, line + 1)};
#pragma GCC unroll 8
    for (int t = 0; t < 8; ++t) {
      const __m512i index = _mm512_srli_epi16(levels[t / 4], static_cast<unsigned>(t % 4 * 4));
      const auto weights = reinterpret_cast<__m512bh>(_mm512_permutexvar_epi16(index, table));
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const auto pair = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pairs[t * kRows + i])));
        dot[i][t % kChains] = _mm512_dpbf16_ps(dot[i][t % kChains], weights, pair);
      }
    }
  }
  const __m512 scale = floats_of(block.scales);
  const __m512 zero = floats_of(block.zeros);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    __m512 all = dot[i][0];
    for (int c = 1; c < kChains; ++c) all = _mm512_add_ps(all, dot[i][c]);
    const __m512 sum_of_x = _mm512_set1_ps(rows.sums[group * kRows + i]);
    const __m512 centred = _mm512_fnmadd_ps(zero, sum_of_x, all);
    _mm512_store_ps(sums[i], _mm512_fmadd_ps(scale, centred, _mm512_load_ps(sums[i])));
  }
}

#else

/// The same for any processor: the compiler vectorises over columns.
template <int kRows>
void add_block(const Block& block, const Rows& rows, int64_t group, Sums& sums) {
  const uint32_t* pairs = rows.pairs + group * (kGroup / 2) * kRows;
  float scale[kColumns];
  float zero[kColumns];
  for (int64_t j = 0; j < kColumns; ++j) {
    scale[j] = kbh::from_bf16(block.scales[j]);
    zero[j] = kbh::from_bf16(block.zeros[j]);
  }
  float dot[kRows][kColumns] = {};
  for (int64_t line = 0; line < kLines; ++line)
    for (int t = 0; t < 8; ++t) {
      const int shift = t % 2 * 16 + t / 2 * 4;
      float level[kColumns];
      for (int64_t j = 0; j < kColumns; ++j)
        level[j] = static_cast<float>(static_cast<int32_t>(block.levels[line][j] >> shift & 15));
      for (int i = 0; i < kRows; ++i) {
        const uint32_t pair = pairs[(line * 4 + t / 2) * kRows + i];
        const float factor = kbh::from_bf16(static_cast<uint16_t>(pair >> t % 2 * 16));
        for (int64_t j = 0; j < kColumns; ++j) dot[i][j] += factor * level[j];
      }
    }
  for (int i = 0; i < kRows; ++i) {
    const float sum_of_x = rows.sums[group * kRows + i];
    for (int64_t j = 0; j < kColumns; ++j) sums[i][j] += scale[j] * (dot[i][j] - zero[j] * sum_of_x);
  }
}

#endif

}  // namespace w4a16
