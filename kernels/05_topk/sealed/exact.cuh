// Exact selection for any row, by the digits of its k-th key: slower, and indifferent to how the data lie.
#pragma once

#include <cstdint>

#include <kbh/ptx/cluster.cuh>
#include <kbh/ptx/keys.cuh>
#include <kbh/ptx/row_slice.cuh>
#include <kbh/ptx/warp.cuh>

namespace topk {

using namespace kbh::ptx;

inline constexpr int kExactThreads = 1024;
inline constexpr int kMostWinners = 1024;
inline constexpr int kDigits = 256;

/// Where a row's answer goes.
struct Winners {
  float* values;
  int64_t* indices;
  int k;

  __device__ void put(unsigned place, Key key) const {
    if (place >= static_cast<unsigned>(k)) return;
    values[place] = value_of(key);
    indices[place] = place_of(key);
  }
};

struct ExactShared {
  unsigned of_block[kDigits];    // elements of this block with the prefix and this digit next
  unsigned of_cluster[kDigits];  // of all blocks
  unsigned digit, above;         // the k-th key's digit; elements with a greater one
  unsigned greater, equal;    // taken so far: greater ones by the cluster (block 0's counts), equal ones by the block
  Key winners[kMostWinners];  // block 0's
};

__device__ inline unsigned unsigned_order(float value) { return static_cast<unsigned>(ordered(value)) ^ 0x80000000u; }

/// One atomic for all lanes that count the same: a row of equal values would queue up otherwise.
__device__ inline void count(unsigned* histogram, unsigned digit) {
  const unsigned alike = __match_any_sync(__activemask(), digit);
  if (lane_of_thread() == __ffs(alike) - 1) atomicAdd(&histogram[digit], __popc(alike));
}

/// The digit at which `wanted` elements are reached from above. One warp, eight digits to a lane.
__device__ inline void find_digit(ExactShared& shared, unsigned wanted) {
  constexpr int kOfLane = kDigits / kLanes;
  const int lane = lane_of_thread();
  const unsigned* const mine = &shared.of_cluster[(kLanes - 1 - lane) * kOfLane];  // lane 0 has the greatest
  unsigned sum = 0;
  for (int d = 0; d < kOfLane; ++d) sum += mine[d];
  unsigned up_to = sum;
  for (int step = 1; step < kLanes; step *= 2) {
    const unsigned lower = __shfl_up_sync(kAllLanes, up_to, step);
    if (lane >= step) up_to += lower;
  }
  unsigned above = up_to - sum;
  if (above >= wanted || up_to < wanted) return;
  int d = kOfLane - 1;
  for (; above + mine[d] < wanted; --d) above += mine[d];
  shared.digit = (kLanes - 1 - lane) * kOfLane + d;
  shared.above = above;
}

/// For all blocks of a cluster together, and all of their threads. Not inlined: the fast path is to stay short.
__device__ __noinline__ void exact_row(Row row, Winners winners) {
  __shared__ ExactShared shared;
  const unsigned blocks = cluster_size();
  const unsigned me = cluster_rank();
  const int begin = static_cast<int>(static_cast<int64_t>(row.n) * me / blocks);
  const int end = static_cast<int>(static_cast<int64_t>(row.n) * (me + 1) / blocks);
  const int thread = threadIdx.x;

  // The k-th key, eight bits at a time; `wanted` of the elements that agree with it so far are winners.
  unsigned prefix = 0;
  unsigned wanted = winners.k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (thread < kDigits) shared.of_block[thread] = 0;
    __syncthreads();
#pragma unroll 4
    for (int i = begin + thread; i < end; i += kExactThreads) {
      const unsigned order = unsigned_order(row.x[i]);
      if (shift == 24 || order >> (shift + 8) == prefix) count(shared.of_block, order >> shift & (kDigits - 1));
    }
    cluster_sync();
    if (thread < kDigits) {
      unsigned sum = 0;
      for (unsigned block = 0; block < blocks; ++block) sum += *at_rank(&shared.of_block[thread], block);
      shared.of_cluster[thread] = sum;
    }
    cluster_sync();
    if (warp_of_thread() == 0) find_digit(shared, wanted);
    __syncthreads();
    prefix = prefix << 8 | shared.digit;
    wanted -= shared.above;
  }

  // Winners above the k-th key go to the front of block 0's list, in any order. Of its equals each block takes those
  // that the blocks before it leave.
  unsigned equals_before = 0;
  for (unsigned block = 0; block < me; ++block) equals_before += *at_rank(&shared.of_block[prefix % kDigits], block);
  const unsigned equals_here = wanted > equals_before ? wanted - equals_before : 0;
  const unsigned first_equal = winners.k - wanted + equals_before;
  if (thread == 0) shared.greater = shared.equal = 0;
  cluster_sync();
  unsigned* const greater = at_rank(&shared.greater, 0);
  Key* const list = at_rank(shared.winners, 0);
#pragma unroll 4
  for (int i = begin + thread; i < end; i += kExactThreads) {
    const float value = row.x[i];
    const unsigned order = unsigned_order(value);
    if (order > prefix) list[atomicAdd(greater, 1)] = key_of(value, i);
    if (order != prefix || *static_cast<volatile unsigned*>(&shared.equal) >= equals_here) continue;
    const unsigned at = atomicAdd(&shared.equal, 1);
    if (at < equals_here) list[first_equal + at] = key_of(value, i);
  }
  cluster_sync();
  if (me != 0 || thread >= winners.k) return;
  unsigned place = 0;
  for (int i = 0; i < winners.k; ++i) place += shared.winners[i] > shared.winners[thread];
  winners.put(place, shared.winners[thread]);
}

}  // namespace topk
