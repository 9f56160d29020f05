// All SIMD of this submission: two questions about groups of 64 consecutive floats (four cache lines).
// 64, because the answer to "which of you?" then fits one machine word.
#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace topk {

inline constexpr int64_t kGroup = 64;
inline constexpr int64_t kBlock = 16;  // groups whose maxima are taken together

inline void prefetch_group(const float* x) {
  for (int line = 0; line < kGroup; line += 16) __builtin_prefetch(x + line, 0, 2);
}

#if defined(__AVX512F__)

/// The greatest of each lane of a group.
inline __m512 lane_maxima(const float* x) {
  const __m512 low = _mm512_max_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16));
  const __m512 high = _mm512_max_ps(_mm512_loadu_ps(x + 32), _mm512_loadu_ps(x + 48));
  return _mm512_max_ps(low, high);
}

// Each merge halves the lanes that a group takes up and puts two groups into one register: 15 merges for 16 groups,
// 3 instructions each, where 16 separate reductions take 8 each.
inline __m512 merge_neighbours(__m512 a, __m512 b) {
  return _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
inline __m512 merge_pairs(__m512 a, __m512 b) {
  const __m512d c = _mm512_castps_pd(a), d = _mm512_castps_pd(b);
  return _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(c, d)), _mm512_castpd_ps(_mm512_unpackhi_pd(c, d)));
}
inline __m512 merge_quarters(__m512 a, __m512 b) {
  return _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/// maxima[g] = the greatest of x[64 g .. 64 g + 64), for 16 groups. Prefetches the 16 groups that start at `ahead`.
/// Two loops, the first one not unrolled: the compiler would mix the loads of all groups, and hardware prefetchers
/// follow rising addresses only.
inline void block_maxima(const float* x, const float* ahead, float* maxima) {
  __m512 lanes[kBlock];
#pragma GCC unroll 1
  for (int g = 0; g < kBlock; ++g, x += kGroup, ahead += kGroup) {
    prefetch_group(ahead);
    lanes[g] = lane_maxima(x);
  }
  __m512 quad[4];
  for (int q = 0; q < 4; ++q) {
    const __m512* l = lanes + 4 * q;
    quad[q] = merge_pairs(merge_neighbours(l[0], l[1]), merge_neighbours(l[2], l[3]));
  }
  _mm512_storeu_ps(maxima, merge_quarters(merge_quarters(quad[0], quad[1]), merge_quarters(quad[2], quad[3])));
}

/// Bit i tells whether x[i] >= floor, for 64 elements. NaN on either side is a no.
inline uint64_t at_least(const float* x, float floor) {
  const __m512 f = _mm512_set1_ps(floor);
  uint64_t bits = 0;
  for (int part = 3; part >= 0; --part)
    bits = bits << 16 | _mm512_cmp_ps_mask(_mm512_loadu_ps(x + 16 * part), f, _CMP_GE_OQ);
  return bits;
}

#elif defined(__AVX2__)

inline __m256 lane_maxima(const float* x) {
  __m256 m[4];
  for (int i = 0; i < 4; ++i) m[i] = _mm256_max_ps(_mm256_loadu_ps(x + 16 * i), _mm256_loadu_ps(x + 16 * i + 8));
  return _mm256_max_ps(_mm256_max_ps(m[0], m[1]), _mm256_max_ps(m[2], m[3]));
}

// Each merge halves the lanes that a group takes up and puts two groups into one register.
inline __m256 merge_neighbours(__m256 a, __m256 b) {
  return _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
}
inline __m256 merge_pairs(__m256 a, __m256 b) {
  const __m256d c = _mm256_castps_pd(a), d = _mm256_castps_pd(b);
  return _mm256_max_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(c, d)), _mm256_castpd_ps(_mm256_unpackhi_pd(c, d)));
}
inline __m256 merge_halves(__m256 a, __m256 b) {
  return _mm256_max_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

inline void block_maxima(const float* x, const float* ahead, float* maxima) {
  for (int half = 0; half < 2; ++half, maxima += 8) {
    __m256 quad[2];
    for (int q = 0; q < 2; ++q, x += 4 * kGroup, ahead += 4 * kGroup) {
      for (int g = 0; g < 4; ++g) prefetch_group(ahead + g * kGroup);
      const __m256 first = merge_neighbours(lane_maxima(x), lane_maxima(x + kGroup));
      const __m256 second = merge_neighbours(lane_maxima(x + 2 * kGroup), lane_maxima(x + 3 * kGroup));
      quad[q] = merge_pairs(first, second);
    }
    _mm256_storeu_ps(maxima, merge_halves(quad[0], quad[1]));
  }
}

inline uint64_t at_least(const float* x, float floor) {
  const __m256 f = _mm256_set1_ps(floor);
  uint64_t bits = 0;
  for (int part = 7; part >= 0; --part) {
    const __m256 hit = _mm256_cmp_ps(_mm256_loadu_ps(x + 8 * part), f, _CMP_GE_OQ);
    bits = bits << 8 | static_cast<uint64_t>(_mm256_movemask_ps(hit));
  }
  return bits;
}

#else  // any processor: loops that the compiler can turn into whatever vectors there are

inline void block_maxima(const float* x, const float* ahead, float* maxima) {
  for (int64_t g = 0; g < kBlock; ++g, x += kGroup, ahead += kGroup) {
    prefetch_group(ahead);
    float best[16];
    for (int i = 0; i < 16; ++i) best[i] = x[i];
    for (int part = 1; part < 4; ++part)
      for (int i = 0; i < 16; ++i) best[i] = x[16 * part + i] > best[i] ? x[16 * part + i] : best[i];
    for (int width = 8; width > 0; width /= 2)
      for (int i = 0; i < width; ++i) best[i] = best[width + i] > best[i] ? best[width + i] : best[i];
    maxima[g] = best[0];
  }
}

inline uint64_t at_least(const float* x, float floor) {
  uint64_t bits = 0;
  for (int i = 0; i < kGroup; ++i) bits |= static_cast<uint64_t>(x[i] >= floor) << i;
  return bits;
}

#endif

/// The same for one group, where fewer than a block are left.
inline float group_max(const float* x) {
  float best = x[0];
  for (int64_t i = 1; i < kGroup; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

}  // namespace topk
