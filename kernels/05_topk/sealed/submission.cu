// The k largest of each row, exactly. See README.md for the idea, the picture and the log of experiments.
//
// inputs   x        fp32  (batch, n)
// outputs  values   fp32  (batch, k)
//          indices  int64 (batch, k)
#include <kbh/sealed.h>

#include <kbh/ptx/cluster.cuh>
#include <kbh/ptx/keys.cuh>
#include <kbh/ptx/mbarrier.cuh>
#include <kbh/ptx/row_slice.cuh>
#include <kbh/ptx/warp.cuh>

#include "exact.cuh"

namespace {

using namespace kbh::ptx;
using topk::exact_row;
using topk::Winners;

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kLanes;
static_assert(kThreads == topk::kExactThreads);
constexpr int kRoom = 128;  // survivors of one block; more, and the row is selected by exact_row

/// Where no element is: below everything and equal to nothing, as comparisons and fmaxf treat NaN.
constexpr float kAbsent = __builtin_nanf("");

/// At least -infinity, which every element reaches: a thread without elements says nothing wrong.
template <int kCount>
__device__ float largest_of(const float (&values)[kCount]) {
  float most = -kInfinity;
#pragma unroll
  for (const float value : values) most = fmaxf(most, value);
  return most;
}

/// Maxima are taken over groups of lanes: a warp, or half a one where a single block has to find all k winners.
template <int kCluster>
constexpr int kGroupsPerWarp = kCluster == 1 ? 2 : 1;
template <int kCluster>
constexpr int kGroups = kWarps * kGroupsPerWarp<kCluster>;

/// Keys of one block. The odd ends put the lists of neighbours into different banks.
template <int kCluster>
using List = Key[kRoom + 16 / kCluster];

/// What stands in the arrays comes from every block of the cluster.
template <int kCluster>
struct Shared {
  List<kCluster> lists[kCluster];  // elements that reach the least bound
  unsigned counts[kCluster];       // how many; more than kRoom are not listed
  int bounds[kCluster];            // values that `wanted` elements reach
  int maxima[kGroups<kCluster>];   // of this block's groups
  unsigned survivors;              // of this block, so far
  Barrier bounds_here, lists_here;
};

/// For what the barrier counts, or for the own threads where a block works alone.
template <int kCluster>
__device__ void wait_for(Barrier& barrier) {
  if constexpr (kCluster == 1)
    __syncthreads();
  else
    wait(&barrier);
}

template <int kCluster>
__device__ unsigned rank() {
  return blockIdx.x % kCluster;
}

/// Tells every block of the cluster a value that at least `wanted` elements of this block reach: of the group maxima
/// the one in place `wanted`. Each warp counts who stands before its own maxima, and the one whose maximum it is
/// speaks.
template <int kCluster>
__device__ void send_bound(Shared<kCluster>& shared, float most, int wanted) {
  constexpr int kOfWarp = kGroupsPerWarp<kCluster>;
  constexpr int kOfLane = kGroups<kCluster> / kLanes;
  const int lane = lane_of_thread();
  const int key = ordered(most);
  int mine[kOfWarp];
#pragma unroll
  for (int g = 0; g < kOfWarp; ++g) {
    mine[g] = warp_max(lane / (kLanes / kOfWarp) == g ? key : INT_MIN);
    if (lane == g) shared.maxima[warp_of_thread() * kOfWarp + g] = mine[g];
  }
  __syncthreads();
  int others[kOfLane];
#pragma unroll
  for (int s = 0; s < kOfLane; ++s) others[s] = shared.maxima[s * kLanes + lane];
#pragma unroll
  for (int g = 0; g < kOfWarp; ++g) {
    const int place = warp_of_thread() * kOfWarp + g;
    int before = 0;
#pragma unroll
    for (int s = 0; s < kOfLane; ++s)
      before += lanes_where(others[s] > mine[g] || (others[s] == mine[g] && s * kLanes + lane < place));
    if (before != wanted - 1 || lane >= kCluster) continue;
    if constexpr (kCluster == 1) {
      shared.bounds[0] = mine[g];
    } else {
      announce(&shared.bounds_here, sizeof(int), lane);
      send(&shared.bounds[rank<kCluster>()], mine[g], &shared.bounds_here, lane);
    }
  }
}

/// This block's elements that reach `bound`, as keys in its own list.
template <int kCluster, int kCount, typename Slice>
__device__ void list_survivors(Shared<kCluster>& shared, const Slice& slice, const float (&values)[kCount],
                               float bound) {
  unsigned passing = 0;
#pragma unroll
  for (const float value : values) passing += value >= bound;
  if (passing == 0) return;
  unsigned at = atomicAdd(&shared.survivors, passing);
  Key* const list = shared.lists[rank<kCluster>()];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (!(values[i] >= bound)) continue;
    if (at < kRoom) list[at] = key_of(values[i], slice.place(i));
    ++at;
  }
}

/// The own list into every neighbour's copy of it, a warp to a key and a lane to a neighbour.
template <int kCluster>
__device__ void send_survivors(Shared<kCluster>& shared) {
  const unsigned lane = lane_of_thread();
  const unsigned me = rank<kCluster>();
  const unsigned found = shared.survivors;
  const unsigned listed = min(found, kRoom);
  if (lane >= kCluster) return;
  if (warp_of_thread() == 0) {
    announce(&shared.lists_here, (lane == me ? 0 : listed * sizeof(Key)) + sizeof found, lane);
    send(&shared.counts[me], found, &shared.lists_here, lane);
  }
  if (lane == me) return;
  for (unsigned s = warp_of_thread(); s < listed; s += kWarps)
    send(&shared.lists[me][s], shared.lists[me][s], &shared.lists_here, lane);
}

/// How many of this lane's share of all keys are greater than `mine`: the list of one block, or every n-th of it. Four
/// at a time: their loads overlap, and what stands behind the end of a list is loaded but not counted.
template <int kCluster>
__device__ unsigned greater_keys(const Shared<kCluster>& shared, unsigned count, Key mine) {
  constexpr unsigned kStep = kLanes / kCluster;
  const unsigned lane = lane_of_thread();
  const Key* const list = shared.lists[lane % kCluster];
  unsigned greater = 0;
  for (unsigned i = lane / kCluster; i < count; i += 4 * kStep)
#pragma unroll
    for (unsigned j = i; j < i + 4 * kStep; j += kStep) greater += list[j] > mine && j < count;
  return greater;
}

/// A row for each cluster, a slice of it for each block, held in registers.
template <int kCluster, int kVectors, bool kWhole>
__global__ void __launch_bounds__(kThreads, 1)
    select_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int n, int k) {
  __shared__ Shared<kCluster> shared;
  const int64_t row = blockIdx.x / kCluster;
  const Row of_row{x + row * n, n};
  const RowSlice<kThreads, kVectors, kWhole> slice(of_row, rank<kCluster>(), kCluster, kAbsent);

  if (threadIdx.x == 0) {
    shared.survivors = 0;
    if constexpr (kCluster > 1) {
      make_barrier(&shared.bounds_here, kCluster);
      make_barrier(&shared.lists_here, kCluster);
      publish_barriers();
    }
  }
  if constexpr (kCluster > 1) {
    cluster_arrive_relaxed();
    cluster_wait();
  }
  const float most = largest_of(slice.values);
  send_bound(shared, most, (k + kCluster - 1) / kCluster);
  wait_for<kCluster>(shared.bounds_here);
  const float bound = from_ordered(warp_min(shared.bounds[lane_of_thread() % kCluster]));
  if (most >= bound) list_survivors(shared, slice, slice.values, bound);
  __syncthreads();
  if constexpr (kCluster > 1) {
    send_survivors(shared);
    wait(&shared.lists_here);
  }
  const unsigned count = kCluster == 1 ? shared.survivors : shared.counts[lane_of_thread() % kCluster];
  const Winners winners{values + row * k, indices + row * k, k};
  if (__any_sync(kAllLanes, count > kRoom)) return exact_row(of_row, winners);

  const Key* const list = shared.lists[rank<kCluster>()];
  for (unsigned s = warp_of_thread(); s < shared.survivors; s += kWarps) {
    const Key mine = list[s];
    const unsigned place = warp_sum(greater_keys(shared, count, mine));
    if (lane_of_thread() == 0) winners.put(place, mine);
  }
}

constexpr int kArgmaxThreads = 512;

/// k = 1: a block for each row. The first warp that holds the maximum writes it.
template <int kVectors, bool kWhole>
__global__ void __launch_bounds__(kArgmaxThreads)
    largest_of_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int n) {
  constexpr int kOfBlock = kArgmaxThreads / kLanes;
  __shared__ int maxima[kOfBlock];
  const int64_t row = blockIdx.x;
  const RowSlice<kArgmaxThreads, kVectors, kWhole> slice({x + row * n, n}, 0, 1, kAbsent);
  const int mine = ordered(largest_of(slice.values));
  const int of_warp = warp_max(mine);
  if (lane_of_thread() == 0) maxima[warp_of_thread()] = of_warp;
  __syncthreads();
  const int other = maxima[lane_of_thread() % kOfBlock];
  const int best = warp_max(other);
  if (warp_of_thread() != first_lane_where(other == best)) return;
  if (lane_of_thread() != first_lane_where(mine == best)) return;
  int place = 0;
#pragma unroll
  for (int i = kVectors * 4 - 1; i >= 0; --i)
    if (ordered(slice.values[i]) == best) place = slice.place(i);
  values[row] = from_ordered(best);
  indices[row] = place;
}

/// Any shape, several passes over memory.
__global__ void __launch_bounds__(topk::kExactThreads)
    exact_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int n, int k) {
  const int64_t row = blockIdx.x / cluster_size();
  exact_row({x + row * n, n}, {values + row * k, indices + row * k, k});
}

// -- The plan ------------------------------------------------------------------------------------------------------

// Blocks of 1024 threads take a multiprocessor each, and a cluster needs all of its own at once in one graphics processing
// cluster, of which some have an odd number left. Half of the chip always has room: 32 clusters of 4 took 7.7 us (a second
// wave), 32 of 2 took 6.2 (32 x 16384), 64 of 2 took 5.5, 64 single blocks 5.3 (64 x 8192).
constexpr int64_t kMostBlocks = 64;
constexpr int64_t kFewestFloats = 2048;  // of a block; below that more blocks cost more than they bring

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Blocks per row: as many as there is room for.
int cluster_for(int64_t batch, int64_t n) {
  int cluster = 1;
  while (cluster < 16 && batch * cluster * 2 <= kMostBlocks && n >= kFewestFloats * 2 * cluster) cluster *= 2;
  return cluster;
}

/// 16-byte vectors of a row, wherever it begins.
int64_t vectors_of(int64_t n) { return n % 4 == 0 ? n / 4 : ceiling(n + 3, 4); }

/// No cluster at all where a block works alone.
kbh::sealed::Extent clusters(int blocks) { return blocks == 1 ? kbh::sealed::Extent(0, 0, 0) : blocks; }

using Select = void (*)(const float*, float*, int64_t*, int, int);

template <int kCluster, int kVectors>
Select select_with(int64_t n) {
  if (fills<kThreads, kVectors>(n, kCluster)) return select_rows<kCluster, kVectors, true>;
  return select_rows<kCluster, kVectors, false>;
}

template <int kVectors>
Select select_with(int64_t n, int cluster) {
  if (cluster == 1) return select_with<1, kVectors>(n);
  if (cluster == 2) return select_with<2, kVectors>(n);
  if (cluster == 4) return select_with<4, kVectors>(n);
  if (cluster == 8) return select_with<8, kVectors>(n);
  return select_with<16, kVectors>(n);
}

/// The kernel that holds a row in registers; exact_rows where it does not fit, or where its bound would be of no use.
Select kernel_for(int cluster, int64_t n, int64_t k) {
  const int64_t groups = cluster == 1 ? kGroups<1> : kGroups<2>;
  if (ceiling(k, cluster) > groups / 2) return exact_rows;
  const int64_t per_thread = ceiling(ceiling(vectors_of(n), cluster), kThreads);
  if (per_thread <= 1) return select_with<1>(n, cluster);
  if (per_thread <= 2) return select_with<2>(n, cluster);
  if (per_thread <= 4) return select_with<4>(n, cluster);
  return exact_rows;
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t batch = shape["batch"], n = shape["n"], k = shape["k"];
  const auto x = plan.input<float>(0);
  const auto values = plan.output<float>(0);
  const auto indices = plan.output<int64_t>(1);
  const int64_t per_thread = ceiling(vectors_of(n), kArgmaxThreads);
  if (k == 1 && per_thread <= 4) {
    const auto kernel = fills<kArgmaxThreads, 2>(n, 1) ? largest_of_rows<2, true>
                        : per_thread <= 2              ? largest_of_rows<2, false>
                                                       : largest_of_rows<4, false>;
    plan.run(kernel, {.grid = batch, .block = kArgmaxThreads}, x, values, indices, n);
    return;
  }
  const int cluster = cluster_for(batch, n);
  plan.run(kernel_for(cluster, n, k), {.grid = batch * cluster, .block = kThreads, .cluster = clusters(cluster)}, x,
           values, indices, n, k);
}
