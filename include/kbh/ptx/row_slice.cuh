// A block's part of a row of floats, in the registers of its threads.
#pragma once

#include <cstdint>

#include <kbh/ptx/memory.cuh>

namespace kbh::ptx {

inline constexpr float kInfinity = __builtin_inff();

/// A row of any length, anywhere in a tensor that begins at a multiple of 16 bytes.
struct Row {
  const float* x;
  int n;
};

/// What one thread holds: vectors of 16 bytes, a block's width of them apart. kWhole: the blocks' parts fill the row,
/// so that no load asks whether it may, and the first leaves some 80 cycles earlier.
template <int kThreads, int kVectors, bool kWhole>
class RowSlice {
 public:
  static constexpr int kFloats = kThreads * kVectors * 4;  // of a block
  float values[kVectors * 4];

  /// Block `part` of `parts`. All loads are issued before anything else is done; where no element is, the value is
  /// `absent`. Vectors lie at multiples of 16 bytes, so the first begins up to three elements before its row. The two
  /// at a row's ends, where they are not whole, are read element by element.
  __device__ RowSlice(const Row& row, int part, int parts, float absent) {
    if constexpr (kWhole) {
      first_ = part * kFloats + static_cast<int>(threadIdx.x) * 4;
    } else {
      const int before = static_cast<int>(reinterpret_cast<std::uintptr_t>(row.x) / sizeof(float) % 4);
      const int vectors = (before + row.n + 3) / 4;
      const int per_part = (vectors + parts - 1) / parts;
      first_ = (part * per_part + static_cast<int>(threadIdx.x)) * 4 - before;
      end_ = min(min((part + 1) * per_part, vectors) * 4 - before, row.n);
    }
    const auto* const from = reinterpret_cast<const float4*>(row.x + first_);
    const float4 none = {absent, absent, absent, absent};
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const float4* const at = from + v * kThreads;
      const float4 loaded = kWhole ? load_once(at) : load_once(at, is_whole(v), none);
      values[4 * v] = loaded.x;
      values[4 * v + 1] = loaded.y;
      values[4 * v + 2] = loaded.z;
      values[4 * v + 3] = loaded.w;
    }
    if constexpr (!kWhole) {
#pragma unroll
      for (int i = 0; i < kVectors * 4; ++i)
        if (!is_whole(i / 4) && holds(i)) values[i] = row.x[place(i)];
    }
  }

  /// Where values[i] stands in the row.
  __device__ int place(int i) const { return first_ + (i / 4 * kThreads * 4 + i % 4); }

  /// The values to their places in another row that is laid out as the first.
  __device__ void store(float* row) const {
    auto* const to = reinterpret_cast<float4*>(row + first_);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (is_whole(v)) {
        to[v * kThreads] = {values[4 * v], values[4 * v + 1], values[4 * v + 2], values[4 * v + 3]};
        continue;
      }
      for (int i = 4 * v; i < 4 * v + 4; ++i)
        if (holds(i)) row[place(i)] = values[i];
    }
  }

 private:
  __device__ bool is_whole(int v) const { return kWhole || (place(4 * v) >= 0 && place(4 * v) + 4 <= end_); }
  __device__ bool holds(int i) const { return place(i) >= 0 && place(i) < end_; }

  int first_;    // place of values[0]; below 0 where the row has not begun
  int end_ = 0;  // of the block's part
};

/// True where RowSlice<kThreads, kVectors, true> may be used.
template <int kThreads, int kVectors>
constexpr bool fills(std::int64_t n, int parts) {
  return n == static_cast<std::int64_t>(parts) * kThreads * kVectors * 4;
}

}  // namespace kbh::ptx
