// The k largest of each row, exactly. See README.md for the idea, the picture and the log of experiments.
//
// inputs   x        fp32  (batch, n)
// outputs  values   fp32  (batch, k)
//          indices  int64 (batch, k)
#include <kbh/sealed.h>

#include <kbh/ptx/cluster.cuh>
#include <kbh/ptx/keys.cuh>
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

/// Keys of one block, then zeros. The odd ends put the lists of neighbours into different banks.
template <int kCluster>
using List = Key[kRoom + 16 / kCluster];

template <int kCluster>
struct alignas(16) Shared {
  int maxima[kGroups<kCluster>];  // of this block's groups
  int bounds[kCluster];           // from every block: a value that `wanted` of its elements reach
  unsigned survivors;
  unsigned overflow;
  List<kCluster> lists[kCluster];  // from every block: its elements that reach the least bound
};

template <int kCluster>
__device__ void sync() {
  if constexpr (kCluster == 1)
    __syncthreads();
  else
    cluster_sync();
}

/// Tells every block of the cluster a value that at least `wanted` elements of this block reach: of the group maxima
/// the one in place `wanted`. Each warp counts who is above its own maxima, and the one whose maximum it is speaks.
template <int kCluster>
__device__ void publish_bound(Shared<kCluster>& shared, float most, int wanted) {
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
  if constexpr (kCluster > 1) cluster_wait();  // all blocks run: their shared memory is there
#pragma unroll
  for (int g = 0; g < kOfWarp; ++g) {
    int above = 0;
    int reached = 0;
#pragma unroll
    for (int s = 0; s < kOfLane; ++s) {
      above += lanes_where(others[s] > mine[g]);
      reached += lanes_where(others[s] >= mine[g]);
    }
    // Equal maxima speak together, and say the same.
    if (above < wanted && wanted <= reached && lane < kCluster)
      *at_rank(&shared.bounds[blockIdx.x % kCluster], lane) = mine[g];
  }
}

/// This block's elements that reach `bound`, as keys in its own list and in its neighbours' copies of it.
template <int kCluster, int kVectors>
__device__ void publish_survivors(Shared<kCluster>& shared, const RowSlice<kThreads, kVectors>& slice, float most,
                                  float bound) {
  const unsigned me = blockIdx.x % kCluster;
  Key* const list = shared.lists[me];
  if (most >= bound) {
#pragma unroll
    for (int i = 0; i < kVectors * 4; ++i)
      if (slice.values[i] >= bound) {
        const unsigned at = atomicAdd(&shared.survivors, 1);
        if (at < kRoom) list[at] = key_of(slice.values[i], slice.place(i));
      }
  }
  __syncthreads();
  if constexpr (kCluster == 1) return;
  const unsigned found = shared.survivors;
  const unsigned lane = lane_of_thread();
  for (unsigned s = warp_of_thread(); s < min(found, kRoom); s += kWarps)
    if (lane < kCluster && lane != me) *at_rank(&list[s], lane) = list[s];
  if (found > kRoom && threadIdx.x < kCluster) *at_rank(&shared.overflow, threadIdx.x) = 1;
  sync<kCluster>();
}

/// How many of this lane's share of all keys are greater than `mine`. Four at a time: their loads overlap.
template <int kCluster>
__device__ unsigned greater_keys(const Shared<kCluster>& shared, Key mine) {
  constexpr unsigned kStep = kLanes / kCluster;
  const unsigned lane = lane_of_thread();
  const Key* const list = shared.lists[lane % kCluster];
  unsigned greater = 0;
  for (unsigned i = lane / kCluster; i < kRoom; i += 4 * kStep) {
    const Key keys[4] = {list[i], list[i + kStep], list[i + 2 * kStep], list[i + 3 * kStep]};
    for (const Key key : keys) greater += key > mine;
    if (keys[3] == 0) break;
  }
  return greater;
}

/// A row for each cluster, a slice of it for each block, held in registers.
template <int kCluster, int kVectors>
__global__ void __launch_bounds__(kThreads, 1)
    select_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int n, int k) {
  __shared__ Shared<kCluster> shared;
  if constexpr (kCluster > 1) cluster_arrive_relaxed();
  const int row = blockIdx.x / kCluster;
  const Row of_row{x + static_cast<int64_t>(row) * n, n};
  const RowSlice<kThreads, kVectors> slice(of_row, blockIdx.x % kCluster, kCluster, kAbsent);

  // While the loads are under way. Neighbours write to the lists only after the bounds have gone round.
  for (int i = threadIdx.x; i < static_cast<int>(sizeof shared.lists / sizeof(Key)); i += kThreads)
    shared.lists[0][i] = 0;
  if (threadIdx.x == 0) shared.survivors = shared.overflow = 0;

  const float most = largest_of(slice.values);
  publish_bound(shared, most, (k + kCluster - 1) / kCluster);
  sync<kCluster>();
  const int least = warp_min(shared.bounds[lane_of_thread() % kCluster]);
  publish_survivors(shared, slice, most, from_ordered(least));

  const Winners winners{values + static_cast<int64_t>(row) * k, indices + static_cast<int64_t>(row) * k, k};
  const unsigned found = shared.survivors;
  if (kCluster == 1 ? found > kRoom : shared.overflow != 0) return exact_row(of_row, winners);
  const Key* const list = shared.lists[blockIdx.x % kCluster];
  for (unsigned s = warp_of_thread(); s < found; s += kWarps) {
    const Key mine = list[s];
    const unsigned place = warp_sum(greater_keys(shared, mine));
    if (lane_of_thread() == 0) winners.put(place, mine);
  }
}

constexpr int kArgmaxThreads = 512;

/// k = 1: a block for each row. The first warp that holds the maximum writes it.
template <int kVectors>
__global__ void __launch_bounds__(kArgmaxThreads)
    largest_of_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices, int n) {
  constexpr int kOfBlock = kArgmaxThreads / kLanes;
  __shared__ int maxima[kOfBlock];
  const int row = blockIdx.x;
  const RowSlice<kArgmaxThreads, kVectors> slice({x + static_cast<int64_t>(row) * n, n}, 0, 1, kAbsent);
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
  const int row = blockIdx.x / cluster_size();
  exact_row({x + static_cast<int64_t>(row) * n, n},
            {values + static_cast<int64_t>(row) * k, indices + static_cast<int64_t>(row) * k, k});
}

// -- The plan ------------------------------------------------------------------------------------------------------

constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kFewestFloats = 2048;  // of a block; below that more blocks cost more than they bring

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Blocks per row: as many as there are multiprocessors for.
int cluster_for(int64_t batch, int64_t n) {
  int cluster = 1;
  while (cluster < 16 && batch * cluster * 2 <= kMultiprocessors && n >= kFewestFloats * 2 * cluster) cluster *= 2;
  return cluster;
}

/// 16-byte vectors of a row, wherever it begins.
int64_t vectors_of(int64_t n) { return n % 4 == 0 ? n / 4 : ceiling(n + 3, 4); }

/// No cluster at all where a block works alone.
kbh::sealed::Extent clusters(int blocks) { return blocks == 1 ? kbh::sealed::Extent(0, 0, 0) : blocks; }

using Select = void (*)(const float*, float*, int64_t*, int, int);

template <int kVectors>
Select select_with(int cluster) {
  switch (cluster) {
    case 1:
      return select_rows<1, kVectors>;
    case 2:
      return select_rows<2, kVectors>;
    case 4:
      return select_rows<4, kVectors>;
    case 8:
      return select_rows<8, kVectors>;
    default:
      return select_rows<16, kVectors>;
  }
}

/// The kernel that holds a row in registers; exact_rows where it does not fit, or where its bound would be of no use.
Select kernel_for(int cluster, int64_t n, int64_t k) {
  const int64_t groups = cluster == 1 ? kGroups<1> : kGroups<2>;
  if (ceiling(k, cluster) > groups / 2) return exact_rows;
  const int64_t per_thread = ceiling(ceiling(vectors_of(n), cluster), kThreads);
  if (per_thread <= 1) return select_with<1>(cluster);
  if (per_thread <= 2) return select_with<2>(cluster);
  if (per_thread <= 4) return select_with<4>(cluster);
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
    const auto kernel = per_thread <= 2 ? largest_of_rows<2> : largest_of_rows<4>;
    plan.run(kernel, {.grid = batch, .block = kArgmaxThreads}, x, values, indices, n);
    return;
  }
  const int cluster = cluster_for(batch, n);
  plan.run(kernel_for(cluster, n, k), {.grid = batch * cluster, .block = kThreads, .cluster = clusters(cluster)}, x,
           values, indices, n, k);
}
