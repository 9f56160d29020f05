// Softmax of long rows with sums that lose nothing: an fp32 sum carries what it rounds off in a second fp32.
//
//   sums      a block reads a slice of a row into registers and hands on three numbers: the slice's largest logit, and
//             the sum of e^(x - largest) as high and low part
//   divide    a block merges the triples of its row (every block the same way, so all agree to the bit), reads its
//             slice again, by now from the cache, and writes e^(x - m) / S
//
// The low part goes through every merge: lanes, warps, slices. Dropped in any of them, it might as well not be there.
#include <kbh/sealed.h>

#include <cfloat>
#include <cstdint>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kItems = 8;  // logits of a thread
constexpr int kSlice = kThreads * kItems;

/// high + low, with |low| at most half an ulp of high.
struct Sum {
  float high = 0;
  float low = 0;
};

/// Knuth's sum of two numbers: high is their rounded sum, low exactly what the rounding took. The intrinsics keep a
/// compiler from simplifying (a + b) - a.
__device__ Sum two_sum(float a, float b) {
  const float high = __fadd_rn(a, b);
  const float of_b = __fsub_rn(high, a);
  const float of_a = __fsub_rn(high, of_b);
  return {high, __fadd_rn(__fsub_rn(a, of_a), __fsub_rn(b, of_b))};
}

__device__ Sum operator+(const Sum& a, const Sum& b) {
  const Sum high = two_sum(a.high, b.high);
  return two_sum(high.high, __fadd_rn(high.low, __fadd_rn(a.low, b.low)));
}

/// A sum of exponentials relative to the largest logit it has seen. Without a finite logit that is the lowest float, so
/// that differences are never inf - inf.
struct Triple {
  float largest = -FLT_MAX;
  Sum sum;
};

/// The same sum relative to a logit at least as large. e^0 is exactly 1: equal maxima add nothing to the error.
__device__ Sum rescaled(const Triple& part, float largest) {
  const float factor = expf(part.largest - largest);
  return {part.sum.high * factor, part.sum.low * factor};
}

__device__ Triple merge(const Triple& a, const Triple& b) {
  const float largest = fmaxf(a.largest, b.largest);
  return {largest, rescaled(a, largest) + rescaled(b, largest)};
}

__device__ Triple of_lane(const Triple& own, int bit) {
  return {__shfl_xor_sync(0xffffffffu, own.largest, bit),
          {__shfl_xor_sync(0xffffffffu, own.sum.high, bit), __shfl_xor_sync(0xffffffffu, own.sum.low, bit)}};
}

/// The merged triple of all threads, in every thread.
__device__ Triple merge_block(Triple own) {
  __shared__ Triple of_warp[kWarps];
  for (int bit = 1; bit < 32; bit *= 2) own = merge(own, of_lane(own, bit));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  Triple all = of_warp[0];
  for (int warp = 1; warp < kWarps; ++warp) all = merge(all, of_warp[warp]);
  return all;
}

/// Where a thread's item stands in a row: neighbouring threads, neighbouring elements, or groups of four of them.
template <bool kVector>
__device__ int64_t place(int item) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSlice;
  if (kVector) return first + (item / 4 * kThreads + static_cast<int>(threadIdx.x)) * 4 + item % 4;
  return first + item * kThreads + static_cast<int>(threadIdx.x);
}

/// The block's slice of a row; what the row lacks to a whole slice is -inf, a term of 0.
template <bool kVector>
__device__ void load(float (&items)[kItems], const float* row, int64_t vocab) {
  if constexpr (kVector) {
#pragma unroll
    for (int item = 0; item < kItems; item += 4) {
      const int64_t at = place<true>(item);
      const float4 four = at < vocab ? __ldg(reinterpret_cast<const float4*>(row + at))
                                     : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      items[item] = four.x;
      items[item + 1] = four.y;
      items[item + 2] = four.z;
      items[item + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const int64_t at = place<false>(item);
      items[item] = at < vocab ? __ldg(row + at) : -INFINITY;
    }
  }
}

template <bool kVector>
__device__ void store(float* row, const float (&items)[kItems], int64_t vocab) {
  if constexpr (kVector) {
#pragma unroll
    for (int item = 0; item < kItems; item += 4)
      if (const int64_t at = place<true>(item); at < vocab)
        *reinterpret_cast<float4*>(row + at) =
            make_float4(items[item], items[item + 1], items[item + 2], items[item + 3]);
  } else {
#pragma unroll
    for (int item = 0; item < kItems; ++item)
      if (const int64_t at = place<false>(item); at < vocab) row[at] = items[item];
  }
}

/// triples (batch, slices)
template <bool kVector>
__global__ void __launch_bounds__(kThreads) sums(const float* x, Triple* triples, int64_t vocab) {
  float items[kItems];
  load<kVector>(items, x + blockIdx.y * vocab, vocab);
  Triple own;
#pragma unroll
  for (const float item : items) own.largest = fmaxf(own.largest, item);
#pragma unroll
  for (const float item : items) own.sum = own.sum + Sum{expf(item - own.largest), 0};
  const Triple all = merge_block(own);
  if (threadIdx.x == 0) triples[static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x] = all;
}

template <bool kVector>
__global__ void __launch_bounds__(kThreads) divide(const float* x, const Triple* triples, float* y, int64_t vocab) {
  float items[kItems];
  load<kVector>(items, x + blockIdx.y * vocab, vocab);

  const Triple* of_row = triples + static_cast<int64_t>(blockIdx.y) * gridDim.x;
  Triple own;
  for (unsigned slice = threadIdx.x; slice < gridDim.x; slice += kThreads) own = merge(own, of_row[slice]);
  const Triple all = merge_block(own);

  // The quotient from both parts, rounded once; exact where the sum is a power of two.
  const double whole = static_cast<double>(all.sum.high) + static_cast<double>(all.sum.low);
  const auto inverse = static_cast<float>(1.0 / whole);
#pragma unroll
  for (float& item : items) item = expf(item - all.largest) * inverse;
  store<kVector>(y + blockIdx.y * vocab, items, vocab);
}

template <bool kVector>
void plan_for(kbh::sealed::Plan& plan, int64_t batch, int64_t vocab) {
  const int64_t slices = (vocab + kSlice - 1) / kSlice;
  auto x = plan.input<float>(0);
  auto triples = plan.scratch<Triple>(batch * slices);
  plan.run(sums<kVector>, {.grid = {slices, batch}, .block = kThreads}, x, triples, vocab);
  plan.run(divide<kVector>, {.grid = {slices, batch}, .block = kThreads}, x, triples, plan.output<float>(0), vocab);
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t batch = shape["batch"], vocab = shape["vocab"];
  // Rows of whole groups of four begin at 16-byte addresses.
  if (vocab % 4 == 0) return plan_for<true>(plan, batch, vocab);
  plan_for<false>(plan, batch, vocab);
}
