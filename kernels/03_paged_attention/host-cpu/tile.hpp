// All SIMD of this submission: what one page of keys and values does to the query heads of one head of the cache. A
// tile is at most 16 tokens, so that the scores of one query head fill one vector.
//
// With AVX512_BF16, keys and queries are multiplied as they stand, two at a time (vdpbf16ps: products exact, sums
// fp32), and weights are rounded to bf16 to meet the values. Without it, the same in fp32 by loops that compilers
// vectorise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <kbh/numbers.hpp>

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#include <immintrin.h>
#define PAGED_BF16 1
#endif

namespace paged {

inline constexpr int64_t kTile = 16;
inline constexpr int64_t kMaxGroup = 16;
inline constexpr int64_t kMaxWidth = 128;

/// Running softmax of the query heads of one head of the cache. Sums are of e^(score - largest) * value.
struct State {
  float sums[kMaxGroup * kMaxWidth];  // (group, width)
  float largest[kMaxGroup];
  float totals[kMaxGroup];

  void reset(int64_t group, int64_t width) {
    std::fill_n(sums, group * width, 0.0f);
    std::fill_n(largest, group, -std::numeric_limits<float>::infinity());
    std::fill_n(totals, group, 0.0f);
  }

  /// Takes in another part of the same sequence.
  void merge(const State& other, int64_t group, int64_t width) {
    for (int64_t h = 0; h < group; ++h) {
      const float both = std::max(largest[h], other.largest[h]);
      const float mine = std::exp2(largest[h] - both), theirs = std::exp2(other.largest[h] - both);
      for (int64_t d = h * width; d < (h + 1) * width; ++d) sums[d] = sums[d] * mine + other.sums[d] * theirs;
      totals[h] = totals[h] * mine + other.totals[h] * theirs;
      largest[h] = both;
    }
  }
};

/// Tokens of one page for one head of the cache.
struct Tile {
  const uint16_t* rows;   // [K | V] of the first token
  const uint16_t* ahead;  // the tile that will be worked on a page later, to be fetched meanwhile
  int64_t stride;         // elements from a token to the next
  int64_t count;          // 1 .. kTile
};

inline void prefetch(const uint16_t* line) { __builtin_prefetch(line, 0, 2); }

#if defined(PAGED_BF16)

inline __m512bh as_bf16(__m512i bits) { return reinterpret_cast<__m512bh>(bits); }

/// 16 vectors become one: lane i is the sum of the lanes of vector i. Each merge halves the lanes that a vector takes
/// up and puts two into one register: 15 merges of 3 instructions, where 16 separate reductions take 8 each.
inline __m512 merge_neighbours(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
inline __m512 merge_pairs(__m512 a, __m512 b) {
  const __m512d c = _mm512_castps_pd(a), d = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(c, d)), _mm512_castpd_ps(_mm512_unpackhi_pd(c, d)));
}
inline __m512 merge_quarters(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/// lane i = sum over v[i], for 16 vectors.
inline __m512 lane_sums(const __m512* v) {
  __m512 fours[4];
  for (int i = 0; i < 4; ++i)
    fours[i] = merge_pairs(merge_neighbours(v[4 * i], v[4 * i + 1]), merge_neighbours(v[4 * i + 2], v[4 * i + 3]));
  // Each of fours[i] holds its four sums in each of its four quarters.
  return merge_quarters(merge_quarters(fours[0], fours[1]), merge_quarters(fours[2], fours[3]));
}

/// 2^x for x <= 0: relative error below 2^-22; 0 below -126.
inline __m512 exp2_of_negative(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, 0);
  const __m512 f = _mm512_sub_ps(x, whole);  // -1/2 .. 1/2
  __m512 series = _mm512_set1_ps(1.5403530e-4f);
  series = _mm512_fmadd_ps(series, f, _mm512_set1_ps(1.3333558e-3f));
  series = _mm512_fmadd_ps(series, f, _mm512_set1_ps(9.6181291e-3f));
  series = _mm512_fmadd_ps(series, f, _mm512_set1_ps(5.5504109e-2f));
  series = _mm512_fmadd_ps(series, f, _mm512_set1_ps(2.4022651e-1f));
  series = _mm512_fmadd_ps(series, f, _mm512_set1_ps(6.9314718e-1f));
  series = _mm512_fmadd_ps(series, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(series, whole);
}

inline void scale_row(float* sums, int64_t width, float factor) {
  for (int64_t d = 0; d < width; d += 16)
    _mm512_storeu_ps(sums + d, _mm512_mul_ps(_mm512_loadu_ps(sums + d), _mm512_set1_ps(factor)));
}

/// Scores of all heads of the group: scores[h] holds the tile's tokens. Rows beyond the count are not read.
template <int Width>
inline void tile_scores(const Tile& tile, const uint16_t* q, int64_t group, __m512* scores) {
  constexpr int kVectors = Width / 32;
  __m512 partial[kMaxGroup][kTile];
#pragma GCC unroll 1
  for (int64_t t = 0; t < tile.count; ++t) {
    __m512bh key[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      key[v] = as_bf16(_mm512_loadu_si512(tile.rows + t * tile.stride + 32 * v));
      prefetch(tile.ahead + t * tile.stride + 32 * v);
    }
    for (int64_t h = 0; h < group; ++h) {
      __m512 sum = _mm512_setzero_ps();
      for (int v = 0; v < kVectors; ++v)
        sum = _mm512_dpbf16_ps(sum, as_bf16(_mm512_loadu_si512(q + h * Width + 32 * v)), key[v]);
      partial[h][t] = sum;
    }
  }
  for (int64_t h = 0; h < group; ++h) {
    for (int64_t t = tile.count; t < kTile; ++t) partial[h][t] = _mm512_setzero_ps();
    scores[h] = lane_sums(partial[h]);
  }
}

/// sums += weights * values. weights[h] are the tile's 16 weights in bf16; those beyond the count are 0. Values are
/// taken 32 columns and two tokens at a time: interleaved, they meet a pair of weights in one instruction.
template <int Width, int Group, bool Fetch>
inline void add_values(const Tile& tile, const uint32_t (*weights)[kTile / 2], float* sums) {
  const uint16_t* values = tile.rows + Width;
  for (int column = 0; column < Width; column += 32) {
    __m512 low[Group], high[Group];  // columns 0-3, 8-11, 16-19, 24-27 and the others: as unpack leaves them
    for (int h = 0; h < Group; ++h) low[h] = high[h] = _mm512_setzero_ps();
    for (int64_t pair = 0; 2 * pair < tile.count; ++pair) {
      const uint16_t* at = values + 2 * pair * tile.stride + column;
      if (Fetch) {
        prefetch(tile.ahead + Width + 2 * pair * tile.stride + column);
        prefetch(tile.ahead + Width + (2 * pair + 1) * tile.stride + column);
      }
      const __m512i first = _mm512_loadu_si512(at);
      const __m512i second = 2 * pair + 1 < tile.count ? _mm512_loadu_si512(at + tile.stride) : _mm512_setzero_si512();
      const __m512bh left = as_bf16(_mm512_unpacklo_epi16(first, second));
      const __m512bh right = as_bf16(_mm512_unpackhi_epi16(first, second));
      for (int h = 0; h < Group; ++h) {
        const __m512bh weight = as_bf16(_mm512_set1_epi32(static_cast<int>(weights[h][pair])));
        low[h] = _mm512_dpbf16_ps(low[h], weight, left);
        high[h] = _mm512_dpbf16_ps(high[h], weight, right);
      }
    }
    const __m512i front = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i back = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    for (int h = 0; h < Group; ++h) {
      float* to = sums + h * Width + column;
      _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_permutex2var_ps(low[h], front, high[h])));
      _mm512_storeu_ps(to + 16, _mm512_add_ps(_mm512_loadu_ps(to + 16), _mm512_permutex2var_ps(low[h], back, high[h])));
    }
  }
}

/// Groups of any size, in steps that registers hold.
template <int Width>
inline void add_values_of_group(const Tile& tile, int64_t group, const uint32_t (*weights)[kTile / 2], float* sums) {
  switch (group) {
    case 1:
      return add_values<Width, 1, true>(tile, weights, sums);
    case 4:
      return add_values<Width, 4, true>(tile, weights, sums);
    case 8:
      return add_values<Width, 8, true>(tile, weights, sums);
  }
  add_values<Width, 1, true>(tile, weights, sums);
  int64_t h = 1;
  for (; h + 4 <= group; h += 4) add_values<Width, 4, false>(tile, weights + h, sums + h * Width);
  for (; h < group; ++h) add_values<Width, 1, false>(tile, weights + h, sums + h * Width);
}

/// Takes a tile in. `scale` is log2(e) / sqrt(width).
template <int Width>
inline void attend_tile(const Tile& tile, const uint16_t* q, int64_t group, float scale, State& state) {
  __m512 scores[kMaxGroup];
  tile_scores<Width>(tile, q, group, scores);
  const auto valid = static_cast<__mmask16>((1u << tile.count) - 1);
  alignas(64) uint32_t weights[kMaxGroup][kTile / 2];
  for (int64_t h = 0; h < group; ++h) {
    const __m512 score = _mm512_mask_mul_ps(_mm512_set1_ps(-std::numeric_limits<float>::infinity()), valid, scores[h],
                                            _mm512_set1_ps(scale));
    const float most = _mm512_reduce_max_ps(score);
    if (most > state.largest[h]) {
      const float factor = std::exp2(state.largest[h] - most);
      state.totals[h] *= factor;
      scale_row(state.sums + h * Width, Width, factor);
      state.largest[h] = most;
    }
    const __m512 weight = exp2_of_negative(_mm512_sub_ps(score, _mm512_set1_ps(state.largest[h])));
    const __m256i rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(weight));
    _mm256_store_si256(reinterpret_cast<__m256i*>(weights[h]), rounded);
    // The total is of the rounded weights: their errors then leave the mean alone.
    state.totals[h] += _mm512_reduce_add_ps(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16)));
  }
  add_values_of_group<Width>(tile, group, weights, state.sums);
}

#else

template <int Width>
inline void attend_tile(const Tile& tile, const uint16_t* q, int64_t group, float scale, State& state) {
  float wide[Width];
  float weights[kMaxGroup][kTile];
  for (int64_t t = 0; t < tile.count; ++t) {
    for (int line = 0; line < 2 * Width; line += 32) prefetch(tile.ahead + t * tile.stride + line);
    for (int d = 0; d < Width; ++d) wide[d] = kbh::from_bf16(tile.rows[t * tile.stride + d]);
    for (int64_t h = 0; h < group; ++h) {
      float lanes[16] = {};
      for (int d = 0; d < Width; d += 16)
        for (int lane = 0; lane < 16; ++lane) lanes[lane] += kbh::from_bf16(q[h * Width + d + lane]) * wide[d + lane];
      for (int half = 8; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      weights[h][t] = lanes[0] * scale;
    }
  }
  for (int64_t h = 0; h < group; ++h) {
    const float most = *std::max_element(weights[h], weights[h] + tile.count);
    if (most > state.largest[h]) {
      const float factor = std::exp2(state.largest[h] - most);
      state.totals[h] *= factor;
      for (int d = 0; d < Width; ++d) state.sums[h * Width + d] *= factor;
      state.largest[h] = most;
    }
    for (int64_t t = 0; t < tile.count; ++t) {
      weights[h][t] = std::exp2(weights[h][t] - state.largest[h]);
      state.totals[h] += weights[h][t];
    }
  }
  for (int64_t t = 0; t < tile.count; ++t) {
    for (int d = 0; d < Width; ++d) wide[d] = kbh::from_bf16(tile.rows[t * tile.stride + Width + d]);
    for (int64_t h = 0; h < group; ++h)
      for (int d = 0; d < Width; ++d) state.sums[h * Width + d] += weights[h][t] * wide[d];
  }
}

#endif

}  // namespace paged
