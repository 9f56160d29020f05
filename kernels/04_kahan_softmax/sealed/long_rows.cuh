// Rows that do not fit into the registers of sixteen blocks: read three times, the second and third from L2 where it
// holds them.
#pragma once

#include <climits>
#include <cstdint>

#include <kbh/ptx/cluster.cuh>

#include "part.cuh"

namespace softmax {

inline constexpr int kLongThreads = 512;

template <typename Visit>
__device__ void each(int begin, int end, const Visit& visit) {
#pragma unroll 4
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kLongThreads) visit(i);
}

/// A row for each cluster.
__global__ void __launch_bounds__(kLongThreads) long_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
  constexpr int kWarps = kLongThreads / kLanes;
  __shared__ int largest_of_warp[kWarps];
  __shared__ double sum_of_warp[kWarps];
  __shared__ double sum_of_block;
  const int blocks = static_cast<int>(cluster_size());
  const int64_t me = cluster_rank();
  const int begin = static_cast<int>(n * me / blocks);
  const int end = static_cast<int>(n * (me + 1) / blocks);
  const int64_t row = static_cast<int64_t>(blockIdx.x / blocks) * n;

  float most = -kInfinity;
  each(begin, end, [&](int i) { most = fmaxf(most, x[row + i]); });
  const int of_warp = warp_max(ordered(most));
  if (lane_of_thread() == 0) largest_of_warp[warp_of_thread()] = of_warp;
  cluster_sync();
  int of_lane = INT_MIN;  // a warp of each block, block by block
  for (int block = 0; block < blocks; ++block)
    of_lane = max(of_lane, *at_rank(&largest_of_warp[lane_of_thread() % kWarps], block));
  const float largest = from_ordered(warp_max(of_lane));

  CompensatedSum sum;
  each(begin, end, [&](int i) { sum.add(exponential(x[row + i] - largest)); });
  const double of_thread = static_cast<double>(sum.high - 1) + static_cast<double>(sum.low);
  const double total_of_warp = warp_total(of_thread);
  if (lane_of_thread() == 0) sum_of_warp[warp_of_thread()] = total_of_warp;
  __syncthreads();
  if (threadIdx.x == 0) {
    sum_of_block = 0;
    for (const double sum_here : sum_of_warp) sum_of_block += sum_here;
  }
  cluster_sync();
  double total = 0;
  for (int block = 0; block < blocks; ++block) total += *at_rank(&sum_of_block, block);
  cluster_sync();  // nobody leaves whose memory is still being read

  const float factor = inverse(total);
  each(begin, end, [&](int i) { y[row + i] = exponential(x[row + i] - largest) * factor; });
}

}  // namespace softmax
