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

/// A warp takes its elements in this many batches, each with a maximum of its own: exponentials of the first are
/// computed while the loads of the second are under way.
template <int kVectors>
constexpr int kBatches = kVectors >= 4 ? 2 : 1;

template <int kCluster, int kVectors>
struct Shared {
  Part of_batches[kWarps * kBatches<kVectors>];  // of this block
  Part of_blocks[kCluster];                      // of the cluster
  uint64_t arrived;                              // all of of_blocks
};

/// Replaces logits by exponentials below the batch's largest, which the warp agrees upon.
template <int kCount>
__device__ Part exponentiate(float* values) {
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

/// The row's part, and what e^(x - largest of this block) is multiplied with for an output.
struct Total {
  float largest_of_block;
  float factor;
};

/// All blocks tell each other their parts. Sixteen bytes to every neighbour, who waits for those and nothing else.
template <int kCluster, int kVectors>
__device__ Total exchange(Shared<kCluster, kVectors>& shared) {
  constexpr int kParts = kWarps * kBatches<kVectors>;
  const int lane = lane_of_thread();
  if (kCluster == 1 || warp_of_thread() == 0) {
    const Part of_block = merged(lane < kParts ? shared.of_batches[lane] : no_part());
    if constexpr (kCluster == 1) return {of_block.largest, __frcp_rn(static_cast<float>(of_block.sum))};
    if (lane < kCluster) send(&shared.of_blocks[blockIdx.x % kCluster], of_block, &shared.arrived, lane);
  }
  wait_for_bytes(&shared.arrived);
  const Part row = merged(lane < kCluster ? shared.of_blocks[lane] : no_part());
  const float of_block = shared.of_blocks[blockIdx.x % kCluster].largest;
  return {of_block, exponential(of_block - row.largest) * __frcp_rn(static_cast<float>(row.sum))};
}

/// A row for each cluster, a slice of it for each block, held in registers: read once, written once.
template <int kCluster, int kVectors>
__global__ void __launch_bounds__(kThreads, kVectors <= 4 ? 2 : 1)
    softmax_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
  constexpr int kOfBatch = kVectors * 4 / kBatches<kVectors>;
  __shared__ Shared<kCluster, kVectors> shared;
  if constexpr (kCluster > 1) {
    if (threadIdx.x == 0) expect_bytes(&shared.arrived, kCluster * sizeof(Part));
    cluster_arrive_relaxed();
  }
  const int64_t row = static_cast<int64_t>(blockIdx.x / kCluster) * n;
  RowSlice<kThreads, kVectors> slice({x + row, n}, blockIdx.x % kCluster, kCluster, -kInfinity);

  float largest[kBatches<kVectors>];
#pragma unroll
  for (int b = 0; b < kBatches<kVectors>; ++b) {
    const Part part = exponentiate<kOfBatch>(slice.values + b * kOfBatch);
    if (lane_of_thread() == 0) shared.of_batches[warp_of_thread() * kBatches<kVectors> + b] = part;
    largest[b] = part.largest;
  }
  if constexpr (kCluster > 1) cluster_wait();  // all blocks run, and their barriers expect what is sent
  __syncthreads();
  const Total total = exchange(shared);
#pragma unroll
  for (int b = 0; b < kBatches<kVectors>; ++b) {
    const float factor = exponential(largest[b] - finite(total.largest_of_block)) * total.factor;
    for (int i = 0; i < kOfBatch; ++i) slice.values[b * kOfBatch + i] *= factor;
  }
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

template <int kVectors>
Softmax softmax_with(int cluster) {
  switch (cluster) {
    case 1:
      return softmax_rows<1, kVectors>;
    case 2:
      return softmax_rows<2, kVectors>;
    case 4:
      return softmax_rows<4, kVectors>;
    case 8:
      return softmax_rows<8, kVectors>;
    default:
      return softmax_rows<16, kVectors>;
  }
}

Softmax kernel_for(int cluster, int64_t n) {
  const int64_t vectors = vectors_per_thread(n, cluster);
  if (vectors <= 2) return softmax_with<2>(cluster);
  if (vectors <= 4) return softmax_with<4>(cluster);
  if (vectors <= 8) return softmax_with<8>(cluster);
  return softmax_with<kMostVectors>(cluster);
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
