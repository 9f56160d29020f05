// The arithmetic of one segment of a row, as wide as the processor is: exponentials, their compensated sum, and the
// final scaling. Vectors of the compiler's own kind, so that any processor will do; only the streaming store is named.
#pragma once

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
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

inline Floats larger(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xffff, a, b);  // g++ 12 warns of _mm512_max_ps's own undefined operand
#elif defined(__AVX__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

/// The last elements of a segment, filled up with logits that count nothing.
inline Floats load_tail(const float* from, int64_t count) {
  float padded[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) padded[i] = i < count ? from[i] : kMinusInfinity;
  return load(padded);
}

inline constexpr float kTermScale = 0x1p32f;

#if defined(__AVX512F__)

/// 2^(i/16)
inline constexpr auto kRoots = [] {
  std::array<double, 16> roots{1.0};
  for (size_t i = 1; i < roots.size(); ++i) roots[i] = roots[i - 1] * 1.0442737824274138;
  return roots;
}();

/// factor * e^t for t <= 0: within 1.5 ulp and 2^-24 |t|; exactly `factor` for t = 0, 0 for minus infinity.
class Exponential {
 public:
  explicit Exponential(float factor) {
    float table[kLanes];
    for (size_t i = 0; i < kRoots.size(); ++i) table[i] = static_cast<float>(factor * kRoots[i]);
    table_ = load(table);
  }

  /// t = n ln 2 + r with n a multiple of 1/16 and |r| <= ln 2 / 32. Adding 1.5 * 2^19 rounds to such n, whose
  /// sixteenths then stand in the lowest four bits, where the table look-up wants them; scalef takes the whole part of
  /// n, and makes 0 of minus infinity whatever r is (Intel's table of special cases). One fused step for r is enough:
  /// fp32's ln 2 errs by 2e-9, and t itself by more. e^r - 1 = r + r^2/2 + r^3/6 errs by 1e-8.
  Floats operator()(Floats t) const {
    constexpr float kRounder = 786432.0f;
    const Floats shifted = t * 1.44269504f + kRounder;
    const Floats n = shifted - kRounder;
    const Floats r = t - n * 0.693147181f;
    const Floats more = ((r * 0.166666667f + 0.5f) * r + 1.0f) * r;
    const Floats root = _mm512_maskz_permutexvar_ps(0xffff, reinterpret_cast<__m512i>(shifted), table_);
    return _mm512_maskz_scalef_ps(0xffff, root * more + root, n);
  }

 private:
  Floats table_;  // factor * 2^(i/16)
};

#else

/// factor * e^t for t <= 0: within 1.5 ulp and 2^-24 |t|; exactly `factor` for t = 0, next to nothing for t < -104.
class Exponential {
 public:
  explicit Exponential(float factor) : factor_(Floats{} + factor / kTermScale) {}

  Floats operator()(Floats t) const {
    t = larger(t, Floats{} - 104.0f);
    // t = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which then stands in the lowest
    // bits; the 32 more are the scale. One fused step for r is enough: fp32's ln 2 errs by 2e-9, and t itself by more.
    constexpr float kRounder = 12582912.0f + 32.0f;
    const Floats shifted = t * 1.44269504f + kRounder;
    const Floats r = t - (shifted - kRounder) * 0.693147181f;
    // e^r = 1 + r + r^2 q(r), q interpolated at Chebyshev points: relative error below 1.1e-8
    Floats power = r * 0.00139262504f + 0.00836323295f;
    power = power * r + 0.0416665524f;
    power = power * r + 0.166665763f;
    power = power * r + 0.5f;
    power = power * r + 1.0f;
    power = power * r + 1.0f;
    return reinterpret_cast<Floats>(reinterpret_cast<Ints>(power) + (reinterpret_cast<Ints>(shifted) << 23)) * factor_;
  }

 private:
  Floats factor_;
};

#endif

/// Sums in as many lanes, each with what its additions rounded away. Every lane starts at the largest term there is, so
/// that no term is larger than the sum it joins: then three operations find the rounding exactly (Dekker's FastTwoSum),
/// where Knuth's TwoSum takes five.
struct CompensatedSum {
  Floats high = Floats{} + kTermScale;
  Floats low{};

  void add(Floats term) {
    const Floats sum = high + term;
    low += term - (sum - high);
    high = sum;
  }
  [[nodiscard]] double total() const {
    double sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sum += (static_cast<double>(high[lane]) - double{kTermScale}) + static_cast<double>(low[lane]);
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
  const auto take = [](Floats& m, Floats v) { m = larger(m, v); };
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

/// Prefetches n floats from `next`: the memory works while the processor computes.
inline Part part_of(const float* x, int64_t n, const float* next) {
  const float largest = largest_of(x, n);
  const Floats m = Floats{} + (largest == kMinusInfinity ? 0.0f : largest);  // all masked: e^-inf, not e^(inf - inf)
  const Exponential term(kTermScale);
  CompensatedSum sums[2];
  int64_t i = 0;
  const auto step = [&](CompensatedSum& sum, int64_t at) {
    __builtin_prefetch(next + at);
    sum.add(term(load(x + at) - m));
  };
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    step(sums[0], i);
    step(sums[1], i + kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) step(sums[0], i);
  if (i < n) sums[1].add(term(load_tail(x + i, n - i) - m));
  return {largest, sums[0].total() + sums[1].total()};
}

/// y = e^(x - m) * inverse, streamed.
inline void write_outputs(const float* x, int64_t n, float m, float inverse, float* y) {
  const Exponential scaled(inverse);
  const auto outputs = [=](Floats logits) { return scaled(logits - m); };
  const auto write_few = [=](int64_t first, int64_t count) {
    const Floats few = outputs(load_tail(x + first, count));
    for (int64_t i = 0; i < count; ++i) y[first + i] = few[i];
  };
  const auto floats_off = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) % kBytes / sizeof(float));
  int64_t i = std::min(n, (kLanes - floats_off) % kLanes);  // up to the first aligned vector
  write_few(0, i);
  for (; i + kLanes <= n; i += kLanes) stream(y + i, outputs(load(x + i)));
  write_few(i, n - i);
}

}  // namespace softmax
