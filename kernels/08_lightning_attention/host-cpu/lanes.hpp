// All of the SIMD: as many floats as one register holds, and the few operations that a step needs.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lightning {

#if defined(__AVX512F__)

struct Lanes {
  static constexpr int64_t kWidth = 16;
  __m512 x;

  static Lanes all(float value) { return {_mm512_set1_ps(value)}; }
  static Lanes load(const float* from) { return {_mm512_loadu_ps(from)}; }
  /// 16 bf16 numbers: the upper halves of floats.
  static Lanes load_bf16(const uint16_t* from) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  void store(float* to) const { _mm512_storeu_ps(to, x); }
  /// Past the caches: a line that is written whole need not be read first. `to` is aligned to the register.
  void stream(float* to) const { _mm512_stream_ps(to, x); }
  /// this * b + c, rounded once.
  [[nodiscard]] Lanes times_plus(Lanes b, Lanes c) const { return {_mm512_fmadd_ps(x, b.x, c.x)}; }
  [[nodiscard]] Lanes times(Lanes b) const { return {_mm512_mul_ps(x, b.x)}; }
};

#elif defined(__AVX2__) && defined(__FMA__)

struct Lanes {
  static constexpr int64_t kWidth = 8;
  __m256 x;

  static Lanes all(float value) { return {_mm256_set1_ps(value)}; }
  static Lanes load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static Lanes load_bf16(const uint16_t* from) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
  void store(float* to) const { _mm256_storeu_ps(to, x); }
  void stream(float* to) const { _mm256_stream_ps(to, x); }
  [[nodiscard]] Lanes times_plus(Lanes b, Lanes c) const { return {_mm256_fmadd_ps(x, b.x, c.x)}; }
  [[nodiscard]] Lanes times(Lanes b) const { return {_mm256_mul_ps(x, b.x)}; }
};

#else

/// Four floats for the compiler to place; without instructions of its own for streaming.
struct Lanes {
  static constexpr int64_t kWidth = 4;
  float x[4];

  static Lanes all(float value) { return {{value, value, value, value}}; }
  static Lanes load(const float* from) { return {{from[0], from[1], from[2], from[3]}}; }
  static Lanes load_bf16(const uint16_t* from) {
    Lanes lanes;
    for (int i = 0; i < 4; ++i) {
      const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
      __builtin_memcpy(&lanes.x[i], &bits, sizeof bits);
    }
    return lanes;
  }
  void store(float* to) const {
    for (int i = 0; i < 4; ++i) to[i] = x[i];
  }
  void stream(float* to) const { store(to); }
  [[nodiscard]] Lanes times_plus(Lanes b, Lanes c) const {
    Lanes lanes;
    for (int i = 0; i < 4; ++i) lanes.x[i] = x[i] * b.x[i] + c.x[i];
    return lanes;
  }
  [[nodiscard]] Lanes times(Lanes b) const { return times_plus(b, all(0)); }
};

#endif

/// Streamed stores are not ordered with other stores: before anybody else is told that they are done.
inline void finish_streaming() {
#if defined(__AVX512F__) || defined(__AVX2__)
  _mm_sfence();
#endif
}

}  // namespace lightning
