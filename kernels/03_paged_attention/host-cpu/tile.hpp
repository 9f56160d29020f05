// All SIMD of this submission: what 16 tokens of one head of the cache do to four query heads.
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

inline constexpr int64_t kTile = 16;       // tokens
inline constexpr int64_t kQuad = 4;        // query heads: as many as have their queries in registers
inline constexpr int64_t kMaxWidth = 128;  // head_dim
inline constexpr int64_t kLine = 32;       // bf16 of a cache line
inline constexpr int64_t kStreams = 2;     // places from which the next page is fetched in turn

/// Running softmax of four query heads. Sums are of 2^(score - largest) * value. Vectors of 16 hold what belongs to the
/// heads as 0 1 2 3 0 1 2 3 ...: largest is the same in each four, totals are spread over them.
struct State {
  alignas(64) float largest[16];
  alignas(64) float totals[16];
  alignas(64) float sums[kQuad][kMaxWidth];  // of column d at place_of(d)

  State() {
    std::fill_n(largest, 16, -std::numeric_limits<float>::infinity());
    std::fill_n(totals, 16, 0.0f);
    std::fill_n(sums[0], kQuad * kMaxWidth, 0.0f);
  }

  [[nodiscard]] float total(int64_t head) const {
    float total = 0;
    for (int64_t i = head; i < 16; i += kQuad) total += totals[i];
    return total;
  }

  /// Scales everything down to a larger largest score.
  void rise(int64_t head, float most) {
    const float factor = std::exp2(largest[head] - most);
    for (float& sum : sums[head]) sum *= factor;
    for (int64_t i = head; i < 16; i += kQuad) totals[i] *= factor, largest[i] = most;
  }

  /// Takes in another part of the same sequence.
  void merge(State& other) {
    for (int64_t head = 0; head < kQuad; ++head) {
      const float both = std::max(largest[head], other.largest[head]);
      rise(head, both);
      other.rise(head, both);
      for (int64_t d = 0; d < kMaxWidth; ++d) sums[head][d] += other.sums[head][d];
    }
    for (int64_t i = 0; i < 16; ++i) totals[i] += other.totals[i];
  }
};

/// Tokens of one page for one head of the cache.
struct Tile {
  const uint16_t* rows;   // [K | V] of the first token
  int64_t stride;         // elements from a token to the next
  int64_t count;          // 1 .. kTile
  const uint16_t* next;   // the tile that is worked on after this one: to be brought into the first-level cache
  const uint16_t* ahead;  // in the next page: as many lines as a tile has are to be brought into the second-level cache
  int64_t stream;         // elements from one of the page's streams to the next

  /// Beyond the count the last token stands again: its value is finite, and its weight there is 0.
  [[nodiscard]] const uint16_t* row(int64_t token) const { return rows + std::min(token, count - 1) * stride; }

  [[nodiscard]] const uint16_t* line_ahead(int i) const { return ahead + i % kStreams * stream + i / kStreams * kLine; }
};

inline void fetch_near(const uint16_t* line) { __builtin_prefetch(line, 0, 3); }
inline void fetch_far(const uint16_t* line) { __builtin_prefetch(line, 0, 2); }

#if defined(PAGED_BF16)

/// Of 32 columns, interleaving leaves 0-3, 8-11, 16-19, 24-27 in one vector and the others in a second one.
inline int64_t place_of(int64_t column) {
  return column / 32 * 32 + column % 8 / 4 * 16 + column % 32 / 8 * 4 + column % 4;
}

inline __m512bh load_pairs(const void* bf16) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(bf16)); }

/// Sums of lanes, several vectors at once: each merge halves the lanes that a vector takes up and puts two into one.
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

/// 2^x for x <= 0: relative error below 2^-22; 0 below -126 and for minus infinity (scalef's rule, whatever the
/// series).
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

/// Scores of four heads, tokens 0 2 4 6, 1 3 5 7, 8 10 12 14, 9 11 13 15: a vector has four tokens of four heads each.
/// The first to read the keys calls for the values of this tile and for half of the lines ahead.
template <int Width, bool First>
inline void tile_scores(const Tile& tile, const uint16_t* q, __m512 (&scores)[4]) {
  constexpr int kLines = Width / kLine;
  __m512bh query[kQuad][kLines];
  for (int h = 0; h < kQuad; ++h)
    for (int v = 0; v < kLines; ++v) query[h][v] = load_pairs(q + h * Width + v * kLine);
#pragma GCC unroll 1
  for (int four = 0; four < 4; ++four) {
    __m512 sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int token = four / 2 * 8 + four % 2 + 2 * i;
      const uint16_t* key = tile.row(token);
      __m512 of_head[kQuad];
      for (__m512& sum : of_head) sum = _mm512_setzero_ps();
      for (int v = 0; v < kLines; ++v) {
        const __m512bh part = load_pairs(key + v * kLine);
        for (int h = 0; h < kQuad; ++h) of_head[h] = _mm512_dpbf16_ps(of_head[h], query[h][v], part);
        if (First) fetch_near(key + Width + v * kLine);
        if (First) fetch_far(tile.line_ahead((four * 4 + i) * kLines + v));
      }
      sums[i] = merge_pairs(merge_neighbours(of_head[0], of_head[1]), merge_neighbours(of_head[2], of_head[3]));
    }
    scores[four] = merge_quarters(merge_quarters(sums[0], sums[1]), merge_quarters(sums[2], sums[3]));
  }
}

/// Scores become weights in bf16, those of two tokens side by side as values will be: pairs[p] for tokens 2p, 2p + 1.
inline void weigh(__m512 (&scores)[4], int64_t count, float scale, State& state, uint32_t (&pairs)[kTile / 2][kQuad]) {
  const __m512 minus_infinity = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (int four = 0; four < 4; ++four) {
    const int64_t valid = std::clamp<int64_t>((count - (four / 2 * 8 + four % 2) + 1) / 2, 0, 4);
    scores[four] = _mm512_mask_mul_ps(minus_infinity, static_cast<__mmask16>((1u << 4 * valid) - 1), scores[four],
                                      _mm512_set1_ps(scale));
  }
  __m512 most = _mm512_max_ps(_mm512_max_ps(scores[0], scores[1]), _mm512_max_ps(scores[2], scores[3]));
  most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0x4e));
  most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0xb1));
  const unsigned risen = _mm512_cmp_ps_mask(most, _mm512_load_ps(state.largest), _CMP_GT_OQ) & 0xfu;
  if (risen != 0) {
    alignas(64) float new_largest[16];
    _mm512_store_ps(new_largest, most);
    for (int h = 0; h < kQuad; ++h)
      if (risen >> h & 1) state.rise(h, new_largest[h]);
  }
  const __m512 largest = _mm512_load_ps(state.largest);
  const __m512bh ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(kbh::to_bf16(1.0f)));
  __m512 totals = _mm512_load_ps(state.totals);
  for (int half = 0; half < 2; ++half) {
    const __m512 even = exp2_of_negative(_mm512_sub_ps(scores[2 * half], largest));
    const __m512 odd = exp2_of_negative(_mm512_sub_ps(scores[2 * half + 1], largest));
    const __m512i low = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(even)));
    const __m512i high = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(odd)));
    const __m512i both = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
    _mm512_store_si512(pairs[4 * half], both);
    // The total is of the rounded weights: their errors then leave the mean alone.
    totals = _mm512_dpbf16_ps(totals, reinterpret_cast<__m512bh>(both), ones);
  }
  _mm512_store_ps(state.totals, totals);
}

/// sums += weights * values, 64 columns and two tokens at a time: interleaved, values meet a pair of weights in one
/// instruction. The last to read the values calls for the keys of the next tile and for the other half of the lines
/// ahead.
template <int Width, bool Last>
inline void add_values(const Tile& tile, const uint32_t (&pairs)[kTile / 2][kQuad], State& state) {
  constexpr int kBlocks = 2;  // of 32 columns
#pragma GCC unroll 1
  for (int column = 0; column < Width; column += kBlocks * 32) {
    __m512 low[kQuad][kBlocks], high[kQuad][kBlocks];
    for (int h = 0; h < kQuad; ++h)
      for (int b = 0; b < kBlocks; ++b) {
        low[h][b] = _mm512_load_ps(&state.sums[h][column + 32 * b]);
        high[h][b] = _mm512_load_ps(&state.sums[h][column + 32 * b + 16]);
      }
#pragma GCC unroll 1
    for (int pair = 0; pair < kTile / 2; ++pair) {
      const uint16_t* rows[2] = {tile.row(2 * pair) + Width + column, tile.row(2 * pair + 1) + Width + column};
      __m512bh left[kBlocks], right[kBlocks];
      for (int b = 0; b < kBlocks; ++b) {
        const __m512i first = _mm512_loadu_si512(rows[0] + 32 * b), second = _mm512_loadu_si512(rows[1] + 32 * b);
        left[b] = reinterpret_cast<__m512bh>(_mm512_unpacklo_epi16(first, second));
        right[b] = reinterpret_cast<__m512bh>(_mm512_unpackhi_epi16(first, second));
        if (Last) {
          const int line = column / kLine * (kTile / 2) + 2 * (2 * pair + b);
          fetch_near(tile.next + 2 * pair * tile.stride + column + 32 * b);
          fetch_near(tile.next + (2 * pair + 1) * tile.stride + column + 32 * b);
          fetch_far(tile.line_ahead(kTile * Width / kLine + line));
          fetch_far(tile.line_ahead(kTile * Width / kLine + line + 1));
        }
      }
      for (int h = 0; h < kQuad; ++h) {
        const __m512bh weight = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pairs[pair][h])));
        for (int b = 0; b < kBlocks; ++b) {
          low[h][b] = _mm512_dpbf16_ps(low[h][b], weight, left[b]);
          high[h][b] = _mm512_dpbf16_ps(high[h][b], weight, right[b]);
        }
      }
    }
    for (int h = 0; h < kQuad; ++h)
      for (int b = 0; b < kBlocks; ++b) {
        _mm512_store_ps(&state.sums[h][column + 32 * b], low[h][b]);
        _mm512_store_ps(&state.sums[h][column + 32 * b + 16], high[h][b]);
      }
  }
}

/// Takes a tile in, for `quads` times four query heads. `scale` is log2(e) / sqrt(width).
template <int Width>
inline void attend_tile(const Tile& tile, const uint16_t* q, float scale, State* states, int64_t quads) {
  for (int64_t i = 0; i < quads; ++i, q += kQuad * Width) {
    __m512 scores[4];
    alignas(64) uint32_t pairs[kTile / 2][kQuad];
    i == 0 ? tile_scores<Width, true>(tile, q, scores) : tile_scores<Width, false>(tile, q, scores);
    weigh(scores, tile.count, scale, states[i], pairs);
    i == quads - 1 ? add_values<Width, true>(tile, pairs, states[i]) : add_values<Width, false>(tile, pairs, states[i]);
  }
}

#else

inline int64_t place_of(int64_t column) { return column; }

template <int Width>
inline void attend_tile(const Tile& tile, const uint16_t* q, float scale, State* states, int64_t quads) {
  for (int line = 0; line < 2 * Width * kTile / kLine; ++line) fetch_far(tile.line_ahead(line));
  const auto read = [](const uint16_t* row, float(&wide)[Width]) {
    for (int d = 0; d < Width; ++d) wide[d] = kbh::from_bf16(row[d]);
  };
  float wide[Width];
  for (int64_t h = 0; h < quads * kQuad; ++h) {
    State& state = states[h / kQuad];
    const int64_t head = h % kQuad;
    float query[Width];
    read(q + h * Width, query);
    float weights[kTile];
    for (int64_t t = 0; t < tile.count; ++t) {
      read(tile.row(t), wide);
      float lanes[16] = {};
      for (int d = 0; d < Width; d += 16)
        for (int lane = 0; lane < 16; ++lane) lanes[lane] += query[d + lane] * wide[d + lane];
      float score = 0;
      for (const float lane : lanes) score += lane;
      weights[t] = score * scale;
    }
    const float most = *std::max_element(weights, weights + tile.count);
    if (most > state.largest[head]) state.rise(head, most);
    for (int64_t t = 0; t < tile.count; ++t) {
      const float weight = std::exp2(weights[t] - state.largest[head]);
      state.totals[head] += weight;
      read(tile.row(t) + Width, wide);
      for (int d = 0; d < Width; ++d) state.sums[head][d] += weight * wide[d];
    }
  }
}

#endif

}  // namespace paged
