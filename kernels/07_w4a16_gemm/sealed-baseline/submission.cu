// out = x w, w = (level - zero) * scale with 4-bit levels: one kernel from M = 1 to large batches.
//
//   repack  (once per state, untimed) puts the levels into the order in which lanes of a warp want them
//   gemm    weights go from memory to registers, 16 bytes a lane, become bf16 there and feed mma.sync; x goes through
//           shared memory, three groups of 128 k in flight
//   add     where K was split: adds the parts in fp32, always in the same order
//
// A byte of w_q holds levels of k and k + 1 in one column, and a right operand of mma.sync wants just such pairs.
// Which k a lane's pair stands for is free as long as x agrees, so lane t of a column takes 16 neighbouring k.
//
//   unit of weights: 16 columns x 64 k = 512 bytes, 16 bytes a lane. Lane (g, t) = (lane / 4, lane % 4) has columns
//   2g and 2g + 1, bytes 8t .. 8t+7 of the unit's 32 in each; those are k = 16t .. 16t+15. Byte i is half i % 2 of
//   step i / 2: four steps of 16 k.
#include <kbh/sealed.h>

#include <cstdint>

#include <kbh/numbers.hpp>

namespace {

constexpr int kGroup = 128;  // k that share a scale and a zero point
constexpr int kUnitColumns = 16;
constexpr int kUnitDepth = 64;
constexpr int kUnits = kGroup / kUnitDepth;  // of a group
constexpr int kTiles = 2;                    // units side by side in a warp: 32 columns
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kColumns = kWarps * kTiles * kUnitColumns;  // of a block: 128
constexpr int kStages = 3;
// Bytes between rows of x in shared memory: 16 more than a group's, so that eight lanes of two rows meet no bank twice.
constexpr int kPitch = 2 * kGroup + 16;

struct Sizes {
  int m, n, k;
  int groups_per_split;
};

/// d += a b: a 16 x 16 (row major), b 16 x 8 (column major), d 16 x 8. With g = lane / 4 and t = lane % 4:
///   a[0], a[1]  row g and g + 8, pair t of the columns     a[2], a[3]  the same rows, pair t + 4
///   b[0], b[1]  column g, pairs t and t + 4 of the rows
///   d[0], d[1]  row g, columns 2t, 2t+1                    d[2], d[3]  row g + 8
__device__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ uint32_t sub_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

__device__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

/// 16 bytes to shared memory in the background, or zeros.
__device__ void copy_async_16(void* to, const void* from, bool valid) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(valid ? 16 : 0)
      : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most kLeft of this thread's latest commits are under way.
template <int kLeft>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// ---- weights

/// One thread gathers one lane's 16 bytes. packed: (N / 16, K / 64) units.
__global__ void repack(const uint8_t* w_q, uint4* packed, int n, int k) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int depth_units = k / kUnitDepth;
  const int64_t unit = thread / 32;
  if (unit >= static_cast<int64_t>(n / kUnitColumns) * depth_units) return;
  const int g = static_cast<int>(thread % 32) / 4, t = static_cast<int>(thread % 4);
  const int64_t column = unit / depth_units * kUnitColumns + 2 * g;
  const int64_t row = unit % depth_units * (kUnitDepth / 2) + 8 * t;
  uint32_t words[4] = {};
  for (int i = 0; i < 16; ++i)
    words[i / 4] |= static_cast<uint32_t>(w_q[(row + i % 8) * n + column + i / 8]) << (8 * (i % 4));
  packed[thread] = make_uint4(words[0], words[1], words[2], words[3]);
}

/// What a lane needs of one group of 128 k in its warp's 32 columns.
struct Group {
  uint4 levels[kUnits][kTiles];
  uint32_t scales[kTiles];  // of columns 2g and 2g + 1, both bf16
  uint32_t zeros[kTiles];
};

__device__ void load(Group& group, const uint4* packed, const uint16_t* scales, const uint16_t* zeros, int first_column,
                     int index, const Sizes& size) {
  const int lane = threadIdx.x % 32;
  const int64_t depth_units = size.k / kUnitDepth;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int column = first_column + tile * kUnitColumns;
    if (column >= size.n) return;  // N is a multiple of 16: a tile is there or not
    const int64_t unit = column / kUnitColumns * depth_units + index * kUnits;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) group.levels[u][tile] = __ldg(packed + (unit + u) * 32 + lane);
    const int64_t pair = static_cast<int64_t>(index) * size.n + column + lane / 4 * 2;
    group.scales[tile] = __ldg(reinterpret_cast<const uint32_t*>(scales + pair));
    group.zeros[tile] = __ldg(reinterpret_cast<const uint32_t*>(zeros + pair));
  }
}

/// A bf16 pair of one column's number: `high` picks which of the two in `both`.
__device__ uint32_t twice(uint32_t both, bool high) { return __byte_perm(both, 0, high ? 0x3232 : 0x1010); }

/// Four bytes of levels as four pairs of weights. 0x4300 | level is the bf16 number 128 + level, and 128 + zero has no
/// fraction either, so the difference is exact and the product is the weight, rounded to bf16 once.
__device__ void dequantise(uint32_t (&weights)[4], uint32_t levels, uint32_t zero_128, uint32_t scale) {
  const uint32_t even = levels & 0x0f0f0f0f, odd = levels >> 4 & 0x0f0f0f0f;
#pragma unroll
  for (int byte = 0; byte < 4; ++byte) {
    const uint32_t pair = __byte_perm(even, odd, 0x0400 + 0x1111 * byte);
    weights[byte] = mul_bf16x2(sub_bf16x2((pair & 0x00ff00ff) | 0x43004300, zero_128), scale);
  }
}

// ---- the product

/// Rows of x of one group, in the background.
template <int kRows>
__device__ void fetch_x(char* stage, const uint16_t* x, int first_row, int group, const Sizes& size) {
  constexpr int kPieces = 2 * kGroup / 16;  // of a row
  for (int i = threadIdx.x; i < kRows * kPieces; i += kThreads) {
    const int row = first_row + i / kPieces, piece = i % kPieces;
    const bool valid = row < size.m;
    const uint16_t* from = x + (valid ? static_cast<int64_t>(row) * size.k + group * kGroup + piece * 8 : 0);
    copy_async_16(stage + i / kPieces * kPitch + piece * 16, from, valid);
  }
}

/// A warp's product: kBlocks blocks of 16 rows times 32 columns. sums[block][tile][j]: of columns 2g + j.
template <int kBlocks>
using Sums = float[kBlocks][kTiles][2][4];

template <int kBlocks>
__device__ void multiply(Sums<kBlocks>& sums, const char* stage, const Group& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit)
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // two steps of 16 k at a time
      uint32_t weights[kTiles][2][4];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const uint32_t zero_128 = twice(group.zeros[tile], j == 1);  // 128 + zero by now
          dequantise(weights[tile][j], (&group.levels[unit][tile].x)[2 * j + half], zero_128,
                     twice(group.scales[tile], j == 1));
        }
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const char* row = stage + (16 * block + g) * kPitch + unit * 2 * kUnitDepth + 32 * t + 16 * half;
        const uint4 upper = *reinterpret_cast<const uint4*>(row);
        const uint4 lower = *reinterpret_cast<const uint4*>(row + 8 * kPitch);
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const uint32_t(&w)[4] = weights[tile][j];
            mma_bf16(sums[block][tile][j], {upper.x, lower.x, upper.y, lower.y}, {w[0], w[1]});
            mma_bf16(sums[block][tile][j], {upper.z, lower.z, upper.w, lower.w}, {w[2], w[3]});
          }
      }
    }
}

/// Adds 128 to both zero points of a pair. Integers up to 143 are exact in bf16.
__device__ uint32_t plus_128(uint32_t zeros) {
  const uint32_t low = kbh::to_bf16(kbh::from_bf16(static_cast<uint16_t>(zeros)) + 128);
  const uint32_t high = kbh::to_bf16(kbh::from_bf16(static_cast<uint16_t>(zeros >> 16)) + 128);
  return low | high << 16;
}

__device__ void put(uint16_t* out, const float (&four)[4]) {
  const uint32_t low = kbh::to_bf16(four[0]) | static_cast<uint32_t>(kbh::to_bf16(four[1])) << 16;
  const uint32_t high = kbh::to_bf16(four[2]) | static_cast<uint32_t>(kbh::to_bf16(four[3])) << 16;
  *reinterpret_cast<uint2*>(out) = make_uint2(low, high);
}
__device__ void put(float* out, const float (&four)[4]) {
  *reinterpret_cast<float4*>(out) = make_float4(four[0], four[1], four[2], four[3]);
}

/// grid: (column blocks, row blocks, splits of K). out: (splits, M, N), bf16 where there is one split.
template <int kBlocks, typename Out>
__global__ void __launch_bounds__(kThreads)
    gemm(const uint4* packed, const uint16_t* scales, const uint16_t* zeros, const uint16_t* x, Out* out, Sizes size) {
  constexpr int kRows = 16 * kBlocks;
  extern __shared__ __align__(16) char shared[];
  const auto stage = [&](int group) { return shared + group % kStages * kRows * kPitch; };

  const int first_row = blockIdx.y * kRows;
  const int first_column = blockIdx.x * kColumns + threadIdx.x / 32 * kTiles * kUnitColumns;
  const int begin = blockIdx.z * size.groups_per_split;
  const int end = min(size.k / kGroup, begin + size.groups_per_split);

  for (int group = begin; group < begin + kStages - 1; ++group) {
    if (group < end) fetch_x<kRows>(stage(group), x, first_row, group, size);
    commit_copies();
  }
  Group next{};
  load(next, packed, scales, zeros, first_column, begin, size);

  Sums<kBlocks> sums = {};
  for (int group = begin; group < end; ++group) {
    wait_copies<kStages - 2>();
    __syncthreads();  // this group's x is there for all, and all are done with the stage that is filled next
    if (const int ahead = group + kStages - 1; ahead < end) fetch_x<kRows>(stage(ahead), x, first_row, ahead, size);
    commit_copies();

    Group now = next;
    if (group + 1 < end) load(next, packed, scales, zeros, first_column, group + 1, size);
#pragma unroll
    for (uint32_t& pair : now.zeros) pair = plus_128(pair);
    multiply<kBlocks>(sums, stage(group), now);
  }

  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  Out* part = out + static_cast<int64_t>(blockIdx.z) * size.m * size.n;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const int row = first_row + 16 * block + 8 * half + g;
        const int column = first_column + tile * kUnitColumns;
        if (row >= size.m || column >= size.n) continue;
        // Accumulator columns 2t, 2t+1 of block j are columns 4t + j and 4t + 2 + j: four neighbours.
        const auto& both = sums[block][tile];
        put(part + static_cast<int64_t>(row) * size.n + column + 4 * t,
            {both[0][2 * half], both[1][2 * half], both[0][2 * half + 1], both[1][2 * half + 1]});
      }
}

/// Four neighbouring elements per thread.
__global__ void add(const float4* parts, uint16_t* out, int64_t quads, int splits) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  float4 sum = parts[i];
  for (int split = 1; split < splits; ++split) {
    const float4 part = parts[split * quads + i];
    sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
  }
  put(out + 4 * i, {sum.x, sum.y, sum.z, sum.w});
}

// ---- the plan

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <int kBlocks>
void plan_for(kbh::sealed::Plan& plan, int64_t m, int64_t n, int64_t k) {
  auto packed = plan.prepared<uint4>(n * k / 2 / 16);
  plan.prepare(repack, {.grid = ceil_div(n * k / 2 / 16, 256), .block = 256}, plan.state<uint8_t>(0), packed, n, k);

  // One round of the machine: four blocks of few rows fit a multiprocessor, or two of many.
  const int64_t wanted = kBlocks <= 2 ? 528 : 264;
  const int64_t blocks = ceil_div(n, kColumns) * ceil_div(m, 16 * kBlocks);
  const int64_t groups = k / kGroup;
  const int64_t per_split = ceil_div(groups, wanted / blocks < 1 ? 1 : wanted / blocks);
  const int64_t splits = ceil_div(groups, per_split);
  const Sizes size = {static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), static_cast<int>(per_split)};
  const kbh::sealed::Launch launch = {.grid = {ceil_div(n, kColumns), ceil_div(m, 16 * kBlocks), splits},
                                      .block = kThreads,
                                      .shared = kStages * 16 * kBlocks * kPitch};

  auto units = packed.template as<const uint4>();
  auto scales = plan.state<uint16_t>(1), zeros = plan.state<uint16_t>(2);
  auto x = plan.input<uint16_t>(0);
  auto out = plan.output<uint16_t>(0);
  if (splits == 1) return plan.run(gemm<kBlocks, uint16_t>, launch, units, scales, zeros, x, out, size);

  auto parts = plan.scratch<float>(splits * m * n);
  plan.run(gemm<kBlocks, float>, launch, units, scales, zeros, x, parts, size);
  plan.run(add, {.grid = ceil_div(m * n / 4, 256), .block = 256}, parts.template as<const float4>(), out, m * n / 4,
           splits);
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t m = shape["M"], n = shape["N"], k = shape["K"];
  if (m <= 16) return plan_for<1>(plan, m, n, k);
  if (m <= 32) return plan_for<2>(plan, m, n, k);
  if (m <= 64) return plan_for<4>(plan, m, n, k);
  plan_for<8>(plan, m, n, k);
}
