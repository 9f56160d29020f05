// Floats as integers of the same order, so that thresholds can be bisected and a value can be sorted with its index.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace topk {

/// Rises with the float; -0 comes directly before +0. Undone by float_of.
inline int32_t rank_of(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

inline float float_of(int32_t rank) { return std::bit_cast<float>(rank ^ ((rank >> 31) & 0x7fffffff)); }

/// The least float that is greater than `value`; NaN above infinity: `x >= NaN` holds for no x.
inline float next_above(float value) {
  if (value == std::numeric_limits<float>::infinity()) return std::numeric_limits<float>::quiet_NaN();
  return value == 0 ? std::numeric_limits<float>::denorm_min() : float_of(rank_of(value) + 1);
}

/// Value and index in one word: greater keys come first in the output, equal values by rising index.
using Key = uint64_t;

inline Key make_key(float value, int64_t index) {
  const auto high = static_cast<uint32_t>(rank_of(value)) ^ 0x80000000u;
  return static_cast<uint64_t>(high) << 32 | ~static_cast<uint32_t>(index);
}

inline float value_of(Key key) {
  return float_of(static_cast<int32_t>(static_cast<uint32_t>(key >> 32) ^ 0x80000000u));
}
inline int64_t index_of(Key key) { return static_cast<int64_t>(~static_cast<uint32_t>(key)); }

}  // namespace topk
