// Softmax of each row with sums that lose nothing. See README.md for the idea, the picture and the log of experiments.
//
// inputs   x  fp32 (batch, vocab)
// outputs  y  fp32 (batch, vocab)
#include <kbh/sealed.h>

#include <kbh/ptx/cluster.cuh>
#include <kbh/ptx/mbarrier.cuh>
#include <kbh/ptx/row_slice.cuh>
#include <kbh/ptx/warp.cuh>

#include "long_rows.cuh"
#include "part.cuh"

namespace {

using namespace softmax;

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kLanes;

template <int kCluster>
struct Shared {
  Part of_warps[kWarps];     // of this block
  Part of_blocks[kCluster];  // of the cluster
  Barrier blocks_here;
};

/// Replaces logits by exponentials below the warp's largest. No wider maximum is waited for: warps whose logits have
/// come compute while others' are under way.
template <int kCount>
__device__ Part exponentiate(float (&values)[kCount]) {
  float most = values[0];
#pragma unroll
  for (int i = 1; i < kCount; ++i) most = fmaxf(most, values[i]);
  most = from_ordered(warp_max(ordered(most)));
  const float largest = finite(most);
  CompensatedSum sum;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = exponential(values[i] - largest);
    sum.add(values[i]);
  }
  return {most, warp_total(sum)};
}

/// What outputs of this warp are its exponentials times, from the largest logits on the way to the row's: the warp's,
/// the block's, the row's. In the same steps as the sum was made, so that roundings of them cancel.
template <int kCluster>
__device__ float factor_of_warp(Shared<kCluster>& shared, float largest) {
  const int lane = lane_of_thread();
  Part block = no_part();
  if (kCluster == 1 || warp_of_thread() == 0) block = merged(lane < kWarps ? shared.of_warps[lane] : no_part());
  if constexpr (kCluster == 1) return exponential(largest - block.largest) * inverse(block.sum);

  // Sixteen bytes to every neighbour, who waits for those and nothing else.
  const unsigned me = blockIdx.x % kCluster;
  if (warp_of_thread() == 0 && lane < kCluster) {
    announce(&shared.blocks_here, sizeof(Part), lane);
    send(&shared.of_blocks[me], block, &shared.blocks_here, lane);
  }
  wait(&shared.blocks_here);
  const Part row = merged(lane < kCluster ? shared.of_blocks[lane] : no_part());
  const float of_block = shared.of_blocks[me].largest;
  return exponential(largest - finite(of_block)) * (exponential(of_block - row.largest) * inverse(row.sum));
}

/// A row for each cluster, a slice of it for each block, held in registers: read once, written once. Two blocks fit on
/// a multiprocessor where their slices are short: eight clusters of sixteen are then sure to run together.
template <int kCluster, int kVectors, bool kWhole>
__global__ void __launch_bounds__(kThreads, kVectors <= 4 ? 2 : 1)
    softmax_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ Shared<kCluster> shared;
  const int64_t row = static_cast<int64_t>(blockIdx.x / kCluster) * n;
  RowSlice<kThreads, kVectors, kWhole> slice({x + row, n}, blockIdx.x % kCluster, kCluster, -kInfinity);

  if constexpr (kCluster > 1) {
    if (threadIdx.x == 0) {
      make_barrier(&shared.blocks_here, kCluster);
      publish_barriers();
    }
    cluster_arrive_relaxed();
    cluster_wait();
  }
  const Part of_warp = exponentiate(slice.values);
  if (lane_of_thread() == 0) shared.of_warps[warp_of_thread()] = of_warp;
  __syncthreads();
  const float factor = factor_of_warp(shared, of_warp.largest);
#pragma unroll
  for (int i = 0; i < kVectors * 4; ++i) slice.values[i] *= factor;
  slice.store(y + row);
}

// -- The plan ------------------------------------------------------------------------------------------------------

constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kFewestFloats = 4096;  // of a block; below that more blocks cost more than they bring
constexpr int64_t kMostVectors = 16;     // of a thread

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// 16-byte vectors of a thread, wherever its row begins.
int64_t vectors_per_thread(int64_t n, int cluster) {
  const int64_t vectors = n % 4 == 0 ? n / 4 : ceiling(n + 3, 4);
  return ceiling(ceiling(vectors, cluster), kThreads);
}

/// Blocks per row: as many as there are multiprocessors for, or as it takes to hold the row.
int cluster_for(int64_t batch, int64_t n) {
  const auto more = [&](int cluster) {
    if (vectors_per_thread(n, cluster) > kMostVectors) return true;
    return batch * cluster * 2 <= kMultiprocessors && n >= kFewestFloats * 2 * cluster;
  };
  int cluster = 1;
  while (cluster < 16 && more(cluster)) cluster *= 2;
  return cluster;
}

using Softmax = void (*)(const float*, float*, int);

template <int kCluster, int kVectors>
Softmax softmax_with(int64_t n) {
  if (fills<kThreads, kVectors>(n, kCluster)) return softmax_rows<kCluster, kVectors, true>;
  return softmax_rows<kCluster, kVectors, false>;
}

template <int kVectors>
Softmax softmax_with(int64_t n, int cluster) {
  if (cluster == 1) return softmax_with<1, kVectors>(n);
  if (cluster == 2) return softmax_with<2, kVectors>(n);
  if (cluster == 4) return softmax_with<4, kVectors>(n);
  if (cluster == 8) return softmax_with<8, kVectors>(n);
  return softmax_with<16, kVectors>(n);
}

Softmax kernel_for(int cluster, int64_t n) {
  const int64_t vectors = vectors_per_thread(n, cluster);
  if (vectors <= 2) return softmax_with<2>(n, cluster);
  if (vectors <= 4) return softmax_with<4>(n, cluster);
  if (vectors <= 8) return softmax_with<8>(n, cluster);
  return softmax_with<kMostVectors>(n, cluster);
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t batch = shape["batch"], n = shape["vocab"];
  const int cluster = cluster_for(batch, n);
  const bool fits = vectors_per_thread(n, cluster) <= kMostVectors;
  static_assert(kLongThreads == kThreads);
  // No cluster at all where a block works alone.
  const kbh::sealed::Extent blocks = cluster == 1 ? kbh::sealed::Extent(0, 0, 0) : cluster;
  plan.run(fits ? kernel_for(cluster, n) : long_rows, {.grid = batch * cluster, .block = kThreads, .cluster = blocks},
           plan.input<float>(0), plan.output<float>(0), n);
}
