// One decode step of lightning attention: s_next = decay * s + k v^T, o = q s_next.
//
// Columns of a memory do not meet: column j of s_next needs v[j] alone, and o[j] is a sum over that column. So a block
// takes 32 of the 128 columns, with all rows, and nothing is merged between blocks.
//
//   block   256 threads: 8 lanes x float4 cover a row's 32 columns (one 128-byte line), 32 rows at a time, 4 times over
//   thread  4 columns of 4 rows: all four loads leave before the first is needed
//   sum     4 rows of a warp by shuffles, 8 warps through shared memory
#include <kbh/sealed.h>

#include <cstdint>

#include <kbh/numbers.hpp>

namespace {

constexpr int kD = 128;
constexpr int kColumns = 32;  // of one block
constexpr int kThreads = 256;
constexpr int kLanes = kColumns / 4;            // threads that share a row
constexpr int kRowsAtOnce = kThreads / kLanes;  // 32
constexpr int kRounds = kD / kRowsAtOnce;       // 4
constexpr int kWarps = kThreads / 32;

__device__ void add(float4& sum, const float4& more) {
  sum.x += more.x;
  sum.y += more.y;
  sum.z += more.z;
  sum.w += more.w;
}

/// The sum over the lanes that differ in bit `bit` of their number.
__device__ void add_lane(float4& sum, int bit) {
  const float4 other = make_float4(__shfl_xor_sync(0xffffffffu, sum.x, bit), __shfl_xor_sync(0xffffffffu, sum.y, bit),
                                   __shfl_xor_sync(0xffffffffu, sum.z, bit), __shfl_xor_sync(0xffffffffu, sum.w, bit));
  add(sum, other);
}

/// k v is exact in fp32 (8 bits times 8), so an element of s_next is rounded once, by the multiply-add.
__device__ float4 next_of(float decay, const float4& s, float key, const float4& value) {
  return make_float4(fmaf(decay, s.x, key * value.x), fmaf(decay, s.y, key * value.y), fmaf(decay, s.z, key * value.z),
                     fmaf(decay, s.w, key * value.w));
}

__device__ float4 four_bf16(const uint16_t* from) {
  return make_float4(kbh::from_bf16(from[0]), kbh::from_bf16(from[1]), kbh::from_bf16(from[2]),
                     kbh::from_bf16(from[3]));
}

__global__ void __launch_bounds__(kThreads)
    step(const uint16_t* q, const uint16_t* k, const uint16_t* v, const float* s, const float* decay, float* s_next,
         uint16_t* o, int heads) {
  const int memory = blockIdx.y;  // sequence * heads + head
  const int lane = threadIdx.x % kLanes;
  const int row0 = threadIdx.x / kLanes;
  const int column = blockIdx.x * kColumns + 4 * lane;
  const int64_t token = int64_t{memory} * kD;
  const auto place = [&](int round) { return (token + row0 + round * kRowsAtOnce) * kD + column; };

  // The memory is touched once in this call: streaming loads and stores leave the cache to others.
  float4 old[kRounds];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) old[round] = __ldcs(reinterpret_cast<const float4*>(s + place(round)));

  const float fade = decay[memory % heads];
  const float4 value = four_bf16(v + token + column);
  float4 read = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int64_t row = token + row0 + round * kRowsAtOnce;
    const float4 next = next_of(fade, old[round], kbh::from_bf16(k[row]), value);
    __stcs(reinterpret_cast<float4*>(s_next + place(round)), next);
    const float query = kbh::from_bf16(q[row]);
    add(read, make_float4(query * next.x, query * next.y, query * next.z, query * next.w));
  }

  // Lanes 8 and 16 apart hold other rows of the same columns.
  add_lane(read, 8);
  add_lane(read, 16);
  __shared__ float4 of_warp[kWarps][kLanes];
  if (threadIdx.x % 32 < kLanes) of_warp[threadIdx.x / 32][lane] = read;
  __syncthreads();
  if (threadIdx.x >= kLanes) return;
  for (int warp = 1; warp < kWarps; ++warp) add(read, of_warp[warp][lane]);
  uint16_t* out = o + token + column;
  out[0] = kbh::to_bf16(read.x);
  out[1] = kbh::to_bf16(read.y);
  out[2] = kbh::to_bf16(read.z);
  out[3] = kbh::to_bf16(read.w);
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t heads = shape["H"], memories = shape["B"] * heads;
  plan.run(step, {.grid = {kD / kColumns, memories}, .block = kThreads}, plan.input<uint16_t>(0),
           plan.input<uint16_t>(1), plan.input<uint16_t>(2), plan.input<float>(3), plan.input<float>(4),
           plan.output<float>(0), plan.output<uint16_t>(1), heads);
}
