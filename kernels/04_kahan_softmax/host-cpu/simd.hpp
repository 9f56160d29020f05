// The arithmetic of one segment of a row, as wide as the processor is: exponentials, their compensated sum, and the
// final scaling. Vectors of the compiler's own kind, so that any processor will do; only the streaming store is named.
#pragma once

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace softmax {

#if defined(__AVX512F__)
inline constexpr int kBytes = 64;
#elif defined(__AVX__)
inline constexpr int kBytes = 32;
#else
inline constexpr int kBytes = 16;
#endif
inline constexpr int64_t kLanes = kBytes / 4;
using Floats = float __attribute__((vector_size(kBytes)));
using Ints = int32_t __attribute__((vector_size(kBytes)));

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

inline Floats load(const float* from) {
  Floats v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void store(float* to, Floats v) { std::memcpy(to, &v, sizeof v); }

/// Past the caches; `to` is aligned to kBytes. Without it every output line would be read before it is written.
inline void stream(float* to, Floats v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, v);
#elif defined(__AVX__)
  _mm256_stream_ps(to, v);
#else
  store(to, v);
#endif
}

/// Streamed stores become visible before what the thread does next.
inline void end_stream() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

/// The last elements of a segment, filled up with logits that count nothing.
inline Floats load_tail(const float* from, int64_t count) {
  float padded[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) padded[i] = i < count ? from[i] : kMinusInfinity;
  return load(padded);
}

inline constexpr float kTermScale = 0x1p32f;

/// e^t * 2^32 for t <= 0, within 1 ulp; exactly 2^32 for t = 0, below 2^-117 for all t < -104. Scaled, so that no term
/// is a denormal number.
inline Floats scaled_exponential(Floats t) {
  t = t < -104.0f ? Floats{} - 104.0f : t;
  // t = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which then stands in the lowest bits.
  constexpr float kRounder = 12582912.0f;
  const Floats shifted = t * 1.44269504f + kRounder;
  const Floats n = shifted - kRounder;
  Floats r = t - n * 0x1.62e4p-1f;  // exact: 13 bits times 8
  r -= n * 1.42860677e-6f;
  // (e^r - 1 - r) / r^2, interpolated at Chebyshev points: relative error of e^r below 1.1e-8
  Floats q = Floats{} + 0.00139262504f;
  q = q * r + 0.00836323295f;
  q = q * r + 0.0416665524f;
  q = q * r + 0.166665763f;
  q = q * r + 0.5f;
  const Floats power = (q * (r * r) + r) + 1.0f;
  return reinterpret_cast<Floats>(reinterpret_cast<Ints>(power) + (reinterpret_cast<Ints>(shifted) << 23) + (32 << 23));
}

/// Sums in as many lanes, each with what its additions rounded away (Knuth's TwoSum).
struct CompensatedSum {
  Floats high{}, low{};

  void add(Floats term) {
    const Floats sum = high + term;
    const Floats part = sum - high;
    low += (high - (sum - part)) + (term - part);
    high = sum;
  }
  [[nodiscard]] double total() const {
    double sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sum += static_cast<double>(high[lane]) + static_cast<double>(low[lane]);
    return sum;
  }
};

/// What a segment contributes: its largest logit m, and the sum of e^(x - m) * 2^32.
struct Part {
  float largest;
  double sum;
};

inline float largest_of(const float* x, int64_t n) {
  Floats most[4];
  for (Floats& m : most) m = Floats{} + kMinusInfinity;
  const auto take = [](Floats& m, Floats v) { m = v > m ? v : m; };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int64_t k = 0; k < 4; ++k) take(most[k], load(x + i + k * kLanes));
  for (; i + kLanes <= n; i += kLanes) take(most[0], load(x + i));
  if (i < n) take(most[1], load_tail(x + i, n - i));
  take(most[0], most[1]);
  take(most[2], most[3]);
  take(most[0], most[2]);
  float m = most[0][0];
  for (int64_t lane = 1; lane < kLanes; ++lane) m = most[0][lane] > m ? most[0][lane] : m;
  return m;
}

/// Fills e[0..n) with e^(x - m) * 2^32. `e` has room for whole vectors. Prefetches n floats from `next`: the memory
/// works while the processor computes.
inline Part terms_of(const float* x, int64_t n, float* e, const float* next) {
  const float largest = largest_of(x, n);
  const Floats m = Floats{} + (largest == kMinusInfinity ? 0.0f : largest);  // all masked: e^-inf, not e^(inf - inf)
  CompensatedSum sums[2];
  int64_t i = 0;
  const auto step = [&](CompensatedSum& sum, int64_t at) {
    __builtin_prefetch(next + at);
    const Floats term = scaled_exponential(load(x + at) - m);
    store(e + at, term);
    sum.add(term);
  };
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    step(sums[0], i);
    step(sums[1], i + kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) step(sums[0], i);
  if (i < n) {
    const Floats term = scaled_exponential(load_tail(x + i, n - i) - m);
    store(e + i, term);
    sums[1].add(term);
  }
  return {largest, sums[0].total() + sums[1].total()};
}

/// y = e * factor * inverse, streamed. Two factors, because their product may be denormal where the outputs are not.
inline void write_scaled(const float* e, int64_t n, float factor, float inverse, float* y) {
  int64_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(y + i) % kBytes != 0; ++i) y[i] = e[i] * factor * inverse;
  for (; i + kLanes <= n; i += kLanes) stream(y + i, load(e + i) * factor * inverse);
  for (; i < n; ++i) y[i] = e[i] * factor * inverse;
}

}  // namespace softmax
