// One head of one sequence: 64 KiB in, 64 KiB out, each byte touched once.
#pragma once

#include <cstdint>

#include <kbh/numbers.hpp>

#include "lanes.hpp"

namespace lightning {

inline constexpr int64_t kD = 128;
inline constexpr int64_t kMemory = kD * kD;

/// Columns that are worked on together: value, sum and fading element of each stay in registers (24 of 32 with AVX-512,
/// 12 of 16 with AVX2).
inline constexpr int64_t kStripe = Lanes::kWidth == 16 ? 128 : Lanes::kWidth == 8 ? 32 : 16;

inline void stripe(const uint16_t* q, const uint16_t* k, const uint16_t* v, const float* s, float decay, float* s_next,
                   uint16_t* o) {
  constexpr int64_t kParts = kStripe / Lanes::kWidth;
  Lanes value[kParts], sum[kParts];
  for (int64_t p = 0; p < kParts; ++p) {
    value[p] = Lanes::load_bf16(v + p * Lanes::kWidth);
    sum[p] = Lanes::all(0);
  }
  const Lanes fading = Lanes::all(decay);
  for (int64_t i = 0; i < kD; ++i) {
    const Lanes key = Lanes::all(kbh::from_bf16(k[i])), query = Lanes::all(kbh::from_bf16(q[i]));
    const float* row = s + i * kD;
    for (int64_t p = 0; p < kParts; ++p) {
      const Lanes next = Lanes::load(row + p * Lanes::kWidth).times_plus(fading, key.times(value[p]));
      next.stream(s_next + i * kD + p * Lanes::kWidth);
      sum[p] = query.times_plus(next, sum[p]);
    }
  }
  float read[kStripe];
  for (int64_t p = 0; p < kParts; ++p) sum[p].store(read + p * Lanes::kWidth);
  for (int64_t j = 0; j < kStripe; ++j) o[j] = kbh::to_bf16(read[j]);
}

inline void step(const uint16_t* q, const uint16_t* k, const uint16_t* v, const float* s, float decay, float* s_next,
                 uint16_t* o) {
  for (int64_t j = 0; j < kD; j += kStripe) stripe(q, k, v + j, s + j, decay, s_next + j, o + j);
}

}  // namespace lightning
