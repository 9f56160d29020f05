// A block's part of a row, in registers.
#pragma once

#include <climits>
#include <cstdint>

#include <kbh/ptx/memory.cuh>

namespace topk {

inline constexpr int kLanes = 32;
__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % kLanes; }
__device__ inline int warp_of_thread() { return static_cast<int>(threadIdx.x) / kLanes; }

struct Row {
  const float* x;
  int n;
};

/// Where no element is: below everything and equal to nothing, as comparisons and fmaxf treat NaN.
__device__ inline float absent() { return __int_as_float(0x7fffffff); }

/// What one thread holds of its block's part: vectors of 16 bytes, `threads` of them apart.
template <int kVectors>
class Slice {
 public:
  float values[kVectors * 4];

  /// Issues all loads before anything else. A row need not begin at a multiple of 16 bytes: its vectors do, and begin
  /// up to three elements before it. The vectors at its two ends, where they are not whole, are read element by
  /// element.
  __device__ Slice(const Row& row, int part, int parts, int threads) : threads_(threads) {
    const int before = static_cast<int>(reinterpret_cast<uintptr_t>(row.x) / sizeof(float) % 4);
    const int vectors = (before + row.n + 3) / 4;
    const int per_part = (vectors + parts - 1) / parts;
    const int end = min((part + 1) * per_part, vectors);
    const int first = part * per_part + static_cast<int>(threadIdx.x);
    place_ = first * 4 - before;
    const auto* from = reinterpret_cast<const float4*>(row.x + place_);
    const float4 none = {absent(), absent(), absent(), absent()};
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int at = place(4 * v);
      const bool whole = first + v * threads < end && at >= 0 && at + 4 <= row.n;
      const float4 loaded = kbh::ptx::load_once(from + v * threads, whole, none);
      values[4 * v] = loaded.x;
      values[4 * v + 1] = loaded.y;
      values[4 * v + 2] = loaded.z;
      values[4 * v + 3] = loaded.w;
    }
    if (before == 0 && row.n % 4 == 0) return;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int at = place(4 * v);
      if (first + v * threads >= end || (at >= 0 && at + 4 <= row.n)) continue;
      for (int i = 0; i < 4; ++i)
        if (at + i >= 0 && at + i < row.n) values[4 * v + i] = row.x[at + i];
    }
  }

  /// Where values[i] stands in the row.
  __device__ int place(int i) const { return place_ + i / 4 * threads_ * 4 + i % 4; }

  /// At least -infinity, which every element reaches: a thread without elements says nothing wrong.
  __device__ float largest() const {
    float most = -__int_as_float(0x7f800000);
#pragma unroll
    for (const float value : values) most = fmaxf(most, value);
    return most;
  }

 private:
  int threads_;
  int place_;
};

}  // namespace topk
