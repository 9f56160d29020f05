// The k largest of each row, by radix selection on keys that are all different.
//
// An element becomes 64 bits: its value as an integer in the order of the floats, then the complement of its index.
// Such keys are distinct, so "the k largest" is one set whatever the ties, and of equal values the lower index comes
// first.
//
//   select   a block keeps a slice in registers and finds the k-th largest key, 11 bits at a time from the top: a
//            histogram of the digit, the bin where the k-th lies, then only keys of that bin count on. It ends as soon
//            as a bin is wanted whole, on normal data after two or three of the six digits.
//   levels   k keys of each slice are the next level's row, until one slice is left; that one sorts and writes.
#include <kbh/sealed.h>

#include <cstdint>

#include <kbh/numbers.hpp>

namespace {

using Key = uint64_t;

constexpr int kItems = 8;  // keys of a thread
constexpr int kMostThreads = 1024;
constexpr int kMostWarps = kMostThreads / 32;
constexpr int kMostK = 1024;
constexpr int kDigitBits = 11;
constexpr int kBins = 1 << kDigitBits;

/// 0 is no key: it would be the NaN with all bits set. It fills what a row lacks to a whole slice.
constexpr Key kNothing = 0;

__device__ Key key_of(float value, int64_t index) {
  const uint32_t bits = kbh::bits_of(value);
  const uint32_t ordered = bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
  return static_cast<Key>(ordered) << 32 | static_cast<uint32_t>(~static_cast<uint32_t>(index));
}
__device__ float value_of(Key key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  return kbh::float_of_bits(ordered ^ (ordered >> 31 != 0 ? 0x80000000u : 0xffffffffu));
}
__device__ int64_t index_of(Key key) { return static_cast<uint32_t>(~static_cast<uint32_t>(key)); }

struct Shared {
  unsigned bins[kBins];
  unsigned of_warp[kMostWarps];
  int digit;        // where the k-th largest key lies
  unsigned above;   // keys in higher bins
  unsigned inside;  // keys in that bin
  unsigned kept;
  Key list[kMostK];
};

/// Finds the bin of the wanted-th largest. Bins are walked from the highest on; each thread owns neighbouring ones.
__device__ void find_bin(Shared& shared, unsigned wanted) {
  const int per_thread = kBins / static_cast<int>(blockDim.x);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int highest = kBins - 1 - static_cast<int>(threadIdx.x) * per_thread;
  unsigned own = 0;
  for (int i = 0; i < per_thread; ++i) own += shared.bins[highest - i];

  unsigned up_to = own;  // keys in this warp's bins, up to this thread's
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned before = __shfl_up_sync(0xffffffffu, up_to, distance);
    if (lane >= distance) up_to += before;
  }
  if (lane == 31) shared.of_warp[warp] = up_to;
  __syncthreads();
  unsigned above = up_to - own;
  for (int i = 0; i < warp; ++i) above += shared.of_warp[i];

  if (above < wanted && wanted <= above + own) {  // true for one thread
    int bin = highest;
    while (above + shared.bins[bin] < wanted) above += shared.bins[bin--];
    shared.digit = bin;
    shared.above = above;
    shared.inside = shared.bins[bin];
  }
  __syncthreads();
}

/// The largest T with at least k keys >= T, or kNothing where the slice has fewer than k. Exactly k keys are >= T
/// otherwise, since keys are distinct.
__device__ Key threshold(Shared& shared, const Key (&keys)[kItems], unsigned k) {
  unsigned wanted = k;
  Key prefix = 0;
  for (int top = 64; top > 0; top -= kDigitBits) {
    const int shift = top > kDigitBits ? top - kDigitBits : 0;
    const auto mask = static_cast<unsigned>((Key{1} << (top - shift)) - 1);
    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) shared.bins[bin] = 0;
    __syncthreads();
#pragma unroll
    for (const Key key : keys) {
      // Shifts by 64 are undefined; the first digit has no prefix.
      const bool counts = top == 64 || key >> top == prefix >> top;
      if (counts) atomicAdd(&shared.bins[static_cast<unsigned>(key >> shift) & mask], 1u);
    }
    __syncthreads();
    find_bin(shared, wanted);
    prefix |= static_cast<Key>(shared.digit) << shift;
    wanted -= shared.above;
    if (shared.inside == wanted) break;
    __syncthreads();
  }
  return prefix;
}

/// Descending, by a bitonic network over the next power of two.
__device__ void sort(Key* list, int count) {
  int size = 1;
  while (size < count) size *= 2;
  for (int i = count + threadIdx.x; i < size; i += blockDim.x) list[i] = kNothing;
  __syncthreads();
  for (int run = 2; run <= size; run *= 2)
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
        const int low = i / distance * 2 * distance + i % distance, high = low + distance;
        const bool descending = (low & run) == 0;
        const Key a = list[low], b = list[high];
        if ((a < b) == descending) {
          list[low] = b;
          list[high] = a;
        }
      }
      __syncthreads();
    }
}

/// The i-th key of a row of n: elements of x at first, keys of the level before later.
__device__ Key key_at(const float* x, int64_t row, int64_t n, int64_t i) { return key_of(x[row * n + i], i); }
__device__ Key key_at(const Key* keys, int64_t row, int64_t n, int64_t i) { return keys[row * n + i]; }

/// Leaves the k largest of this block's slice of its row of n in shared.list, in any order.
template <typename Element>
__device__ void select(Shared& shared, const Element* source, int64_t n, int k) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kItems * blockDim.x;
  Key keys[kItems];
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const int64_t i = first + item * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    keys[item] = i < n ? key_at(source, blockIdx.y, n, i) : kNothing;
  }
  if (threadIdx.x == 0) shared.kept = 0;
  for (int i = threadIdx.x; i < k; i += blockDim.x) shared.list[i] = kNothing;
  const Key least = threshold(shared, keys, static_cast<unsigned>(k));  // its barriers order the two lines above too
#pragma unroll
  for (const Key key : keys)
    if (key != kNothing && key >= least) shared.list[atomicAdd(&shared.kept, 1u)] = key;
  __syncthreads();
}

/// k keys of every slice: kept (batch, slices, k).
template <typename Element>
__global__ void __launch_bounds__(kMostThreads, 1) reduce(const Element* source, Key* kept, int64_t n, int k) {
  __shared__ Shared shared;
  select(shared, source, n, k);
  Key* to = kept + (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * k;
  for (int i = threadIdx.x; i < k; i += blockDim.x) to[i] = shared.list[i];
}

/// The last level: one slice per row, sorted and written.
template <typename Element>
__global__ void __launch_bounds__(kMostThreads, 1)
    finish(const Element* source, float* values, int64_t* indices, int64_t n, int k) {
  __shared__ Shared shared;
  select(shared, source, n, k);
  sort(shared.list, k);
  for (int i = threadIdx.x; i < k; i += blockDim.x) {
    const int64_t place = static_cast<int64_t>(blockIdx.y) * k + i;
    values[place] = value_of(shared.list[i]);
    indices[place] = index_of(shared.list[i]);
  }
}

constexpr int64_t kSlice = 256 * kItems;               // of the first level: short, so that one row fills the machine
constexpr int64_t kLongSlice = kMostThreads * kItems;  // of the others: long, so that they are few

template <typename Element>
void plan_finish(kbh::sealed::Plan& plan, kbh::sealed::Buffer<const Element> source, int64_t batch, int64_t n,
                 int64_t k) {
  const int64_t threads = n <= kSlice ? 256 : n <= 2 * kSlice ? 512 : kMostThreads;
  plan.run(finish<Element>, {.grid = {1, batch}, .block = threads}, source, plan.output<float>(0),
           plan.output<int64_t>(1), n, k);
}

/// A launch that leaves k keys of each slice; returns them.
template <typename Element>
kbh::sealed::Buffer<const Key> plan_reduce(kbh::sealed::Plan& plan, kbh::sealed::Buffer<const Element> source,
                                           int64_t batch, int64_t n, int64_t k, int64_t slice) {
  const int64_t slices = (n + slice - 1) / slice;
  auto kept = plan.scratch<Key>(batch * slices * k);
  plan.run(reduce<Element>, {.grid = {slices, batch}, .block = slice / kItems}, source, kept, n, k);
  return kept.template as<const Key>();
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t batch = shape["batch"], k = shape["k"];
  int64_t n = shape["n"];
  auto x = plan.input<float>(0);
  if (n <= kLongSlice) return plan_finish(plan, x, batch, n, k);

  auto keys = plan_reduce(plan, x, batch, n, k, kSlice);
  n = (n + kSlice - 1) / kSlice * k;
  while (n > kLongSlice) {
    keys = plan_reduce(plan, keys, batch, n, k, kLongSlice);
    n = (n + kLongSlice - 1) / kLongSlice * k;
  }
  plan_finish(plan, keys, batch, n, k);
}
