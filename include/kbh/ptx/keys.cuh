// Floats as integers of the same order, and a float with its place as one integer.
#pragma once

#include <cstdint>

namespace kbh::ptx {

/// Signed integers in the order of the floats; -0 stands before +0, NaN does not occur. Its own inverse on integers, so
/// from_ordered() is the way back. What integers buy: redux.sync, which takes no floats on sm_90.
__device__ inline int ordered(float value) {
  const int bits = __float_as_int(value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
__device__ inline float from_ordered(int order) { return __int_as_float(order ^ ((order >> 31) & 0x7fffffff)); }

/// Value and place as one number: greater for greater values, among equal values for the smaller place. No two keys of
/// a row are equal, and none is 0.
using Key = std::uint64_t;
__device__ inline Key key_of(float value, unsigned place) {
  return static_cast<Key>(static_cast<unsigned>(ordered(value)) ^ 0x80000000u) << 32 | ~place;
}
__device__ inline float value_of(Key key) {
  return from_ordered(static_cast<int>(static_cast<unsigned>(key >> 32) ^ 0x80000000u));
}
__device__ inline unsigned place_of(Key key) { return ~static_cast<unsigned>(key); }

}  // namespace kbh::ptx
