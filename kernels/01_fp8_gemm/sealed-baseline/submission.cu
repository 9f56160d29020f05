// out = bf16(weight_scale * x weight^T), e4m3 times e4m3: the textbook Hopper pipeline.
//
//   producer    one warp asks the tensor memory accelerator (TMA) for tiles of weight and x, five stages ahead
//   consumers   two warpgroups, each 64 rows of weight times all rows of x in the tile: wgmma m64nXk32 from shared
//   memory barriers    full[stage]: its bytes have arrived; empty[stage]: both consumers are done with it
//
// The tile is computed transposed, rows of weight (columns of out) as the left operand: that side of a wgmma is always
// 64, the other is any multiple of 8. So 32 rows of x waste nothing, and large M takes 128.
//
// Hopper's tensor cores add fp8 products with some 14 bits, and the longer the sum, the more is cut. Every 128 k the
// partial sum is therefore added to one in fp32 registers ("promoted").
//
// TMA wants rows at multiples of 16 bytes. Where K is no such multiple, x is copied to wider rows in each call, and
// weight once per state.
#include <kbh/sealed.h>

#include <cstdint>

#include <kbh/numbers.hpp>

namespace {

constexpr int kRows = 128;   // of weight, in a tile: 64 for each consumer
constexpr int kDepth = 128;  // of a stage: bytes, and so k. One row of the widest swizzle, and the step of promotion
constexpr int kStages = 5;
constexpr int kConsumers = 256;  // threads
constexpr int kThreads = kConsumers + 32;

/// Stages first: their swizzle counts on addresses that are multiples of 1024.
template <int kXRows>
struct Shared {
  struct Stage {
    uint8_t weight[kRows * kDepth];
    uint8_t x[kXRows * kDepth];
  } stages[kStages];
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

struct Sizes {
  int m, n;
  int steps;  // K in steps of 128
  int steps_per_split;
};

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- barriers that count arrivals and bytes; a wait names the parity of the phase that it waits for

__device__ void barrier_init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// Makes initialised barriers known to TMA.
__device__ void barriers_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Arrives, and adds to the bytes that the phase waits for.
__device__ void barrier_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
__device__ void barrier_wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

/// A box of the map from column `k` and row `row` on; elements outside the tensor are zeros.
__device__ void load_tile(void* to, const CUtensorMap* map, int k, int row, uint64_t* full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(to)),
      "l"(map), "r"(k), "r"(row), "r"(shared_address(full))
      : "memory");
}

// ---- wgmma

/// A tile in shared memory: rows of 128 bytes, swizzled, groups of eight rows 1024 bytes apart (in units of 16 bytes).
__device__ uint64_t descriptor(const uint8_t* tile) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62, kGroupStride = uint64_t{1024 / 16} << 32, kUnused = 1 << 16;
  return kSwizzle128 | kGroupStride | kUnused | (shared_address(tile) >> 4 & 0x3fff);
}

__device__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
/// Keeps the compiler from moving uses of an accumulator to before the wait.
__device__ void pin(float& accumulator) { asm volatile("" : "+f"(accumulator)::"memory"); }

/// d = a b^T, or d += a b^T: a 64 x 32, b 32 x 32 bytes. Warp w of the group has rows 16w + g and 16w + g + 8 of d,
/// with g = lane / 4 and t = lane % 4: d[4j], d[4j+1] are row g, columns 8j + 2t and + 1; d[4j+2], d[4j+3] row g + 8.
__device__ void wgmma(float (&d)[16], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, add, 1, 1;\n"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

/// The same with b 128 x 32 bytes.
__device__ void wgmma(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, add, 1, 1;\n"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

// ---- the two roles

/// `count` steps from step `first` on.
template <int kXRows>
__device__ void produce(Shared<kXRows>& shared, const CUtensorMap* weight, const CUtensorMap* x, int weight_row,
                        int x_row, int first, int count) {
  for (int i = 0; i < count; ++i) {
    const int slot = i % kStages, round = i / kStages;
    if (round > 0) barrier_wait(&shared.empty[slot], (round - 1) % 2);
    auto& stage = shared.stages[slot];
    barrier_expect(&shared.full[slot], sizeof stage);
    load_tile(stage.weight, weight, (first + i) * kDepth, weight_row, &shared.full[slot]);
    load_tile(stage.x, x, (first + i) * kDepth, x_row, &shared.full[slot]);
  }
}

template <int kXRows>
__device__ void consume(Shared<kXRows>& shared, float (&sums)[kXRows / 2], int group, int count) {
  for (int i = 0; i < count; ++i) {
    const int slot = i % kStages;
    barrier_wait(&shared.full[slot], i / kStages % 2);
    const auto& stage = shared.stages[slot];
    const uint64_t a = descriptor(stage.weight + group * 64 * kDepth), b = descriptor(stage.x);
    float partial[kXRows / 2];
#pragma unroll
    for (float& sum : partial) pin(sum);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < kDepth / 32; ++k)  // 32 bytes further: 2 units of a descriptor
      wgmma(partial, a + 2 * k, b + 2 * k, k > 0);
    wgmma_commit();
    wgmma_wait();
    if (threadIdx.x % 32 == 0) barrier_arrive(&shared.empty[slot]);
#pragma unroll
    for (int j = 0; j < kXRows / 2; ++j) {
      pin(partial[j]);
      sums[j] += partial[j];
    }
  }
}

/// out in bf16 is scaled here; parts of a split stay fp32 and are scaled when they are added.
__device__ void convert(uint16_t& to, float sum, const float* scale, int column) {
  to = kbh::to_bf16(sum * scale[column]);
}
__device__ void convert(float& to, float sum, const float*, int) { to = sum; }

/// grid: (tiles of x rows, tiles of weight rows, splits of K). out (splits, M, N).
template <int kXRows, typename Out>
__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ CUtensorMap weight, const __grid_constant__ CUtensorMap x, const float* scale,
         Out* out, Sizes size) {
  extern __shared__ __align__(1024) uint8_t bytes[];
  auto& shared = *reinterpret_cast<Shared<kXRows>*>(bytes);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      barrier_init(&shared.full[slot], 1);
      barrier_init(&shared.empty[slot], kConsumers / 32);
    }
    barriers_ready();
  }
  __syncthreads();

  const int x_row = blockIdx.x * kXRows, weight_row = blockIdx.y * kRows;
  const int first = blockIdx.z * size.steps_per_split;
  const int count = min(size.steps - first, size.steps_per_split);
  const int warp = threadIdx.x / 32;
  float sums[kXRows / 2] = {};
  if (warp < kConsumers / 32)
    consume<kXRows>(shared, sums, warp / 4, count);
  else if (threadIdx.x % 32 == 0)
    produce<kXRows>(shared, &weight, &x, weight_row, x_row, first, count);
  __syncwarp();  // the producer's other lanes
  __syncthreads();

  // The stages are free now: the tile is turned in them, [row of x][row of weight], and written in whole lines.
  constexpr int kPiece = 16 / sizeof(Out);
  constexpr int kPitch = kRows + kPiece;
  static_assert(sizeof(Out) * kPitch * kXRows <= sizeof shared.stages);
  Out* turned = reinterpret_cast<Out*>(bytes);
  if (warp < kConsumers / 32) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * warp + g + 8 * half;
      const int column = min(weight_row + row, size.n - 1);  // beyond N: any scale, never stored
#pragma unroll
      for (int j = 0; j < kXRows / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          convert(turned[(8 * j + 2 * t + i) * kPitch + row], sums[4 * j + 2 * half + i], scale, column);
    }
  }
  __syncthreads();

  Out* part = out + static_cast<int64_t>(blockIdx.z) * size.m * size.n;
  const bool whole_pieces = size.n % kPiece == 0;  // then rows of out begin at multiples of 16 bytes
  for (int i = threadIdx.x; i < kXRows * (kRows / kPiece); i += kThreads) {
    const int row = i / (kRows / kPiece), column = i % (kRows / kPiece) * kPiece;
    if (x_row + row >= size.m || weight_row + column >= size.n) continue;
    const Out* from = turned + row * kPitch + column;
    Out* to = part + static_cast<int64_t>(x_row + row) * size.n + weight_row + column;
    if (whole_pieces) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int j = 0; j < min(kPiece, size.n - weight_row - column); ++j) to[j] = from[j];
    }
  }
}

/// Adds the parts of a split, always in the same order.
__global__ void add(const float* parts, const float* scale, uint16_t* out, int64_t elements, int n, int splits) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  float sum = 0;
  for (int split = 0; split < splits; ++split) sum += parts[split * elements + i];
  out[i] = kbh::to_bf16(sum * scale[i % n]);
}

/// Rows of k bytes to rows of `pitch` bytes, four bytes a thread. What lies between is left alone: nobody reads it.
__global__ void widen(const uint8_t* from, uint8_t* to, int64_t rows, int k, int pitch) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t row = thread / (pitch / 4);
  const int first = static_cast<int>(thread % (pitch / 4)) * 4;
  if (row >= rows) return;
  for (int i = first; i < min(first + 4, k); ++i) to[row * pitch + i] = from[row * k + i];
}

// ---- the plan

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Where TMA finds a matrix.
struct Matrix {
  kbh::sealed::Buffer<const uint8_t> data;
  int64_t rows;
  int64_t pitch;
};

kbh::sealed::Launch widen_launch(const Matrix& m) {
  return {.grid = ceil_div(m.rows * (m.pitch / 4), 256), .block = 256};
}

/// Widened in every call.
Matrix widened(kbh::sealed::Plan& plan, const Matrix& m, int64_t k) {
  auto wide = plan.scratch<uint8_t>(m.rows * m.pitch);
  plan.run(widen, widen_launch(m), m.data, wide, m.rows, k, m.pitch);
  return {wide.as<const uint8_t>(), m.rows, m.pitch};
}

/// Widened once per state, unless K is so small that the copy would not fit.
Matrix widened_weight(kbh::sealed::Plan& plan, const Matrix& m, int64_t k) {
  if (m.pitch > 2 * k) return widened(plan, m, k);
  auto wide = plan.prepared<uint8_t>(m.rows * m.pitch);
  plan.prepare(widen, widen_launch(m), m.data, wide, m.rows, k, m.pitch);
  return {wide.as<const uint8_t>(), m.rows, m.pitch};
}

/// Boxes of 128 bytes x box_rows, swizzled as wgmma wants them. The width is K, not the pitch: the rest is zeros.
kbh::sealed::TensorMap map_of(kbh::sealed::Plan& plan, const Matrix& m, int64_t k, int box_rows) {
  return plan.tensor_map(m.data, {.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                  .dims = {static_cast<uint64_t>(k), static_cast<uint64_t>(m.rows)},
                                  .strides = {static_cast<uint64_t>(m.pitch)},
                                  .box = {kDepth, static_cast<uint32_t>(box_rows)},
                                  .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                                  .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B});
}

template <int kXRows>
void plan_for(kbh::sealed::Plan& plan, int64_t m, int64_t n, int64_t k) {
  const int64_t pitch = ceil_div(k, 16) * 16;
  Matrix weight = {plan.state<uint8_t>(0), n, pitch}, x = {plan.input<uint8_t>(0), m, pitch};
  if (pitch != k) {
    weight = widened_weight(plan, weight, k);
    x = widened(plan, x, k);
  }
  const auto weight_map = map_of(plan, weight, k, kRows), x_map = map_of(plan, x, k, kXRows);

  // Fewer tiles than processors: K is split as well, for two blocks on each.
  const int64_t steps = ceil_div(k, kDepth);
  const int64_t tiles = ceil_div(m, kXRows) * ceil_div(n, kRows);
  const int64_t per_split = ceil_div(steps, tiles < 132 ? 264 / tiles : 1);
  const int64_t splits = ceil_div(steps, per_split);
  const Sizes size = {static_cast<int>(m), static_cast<int>(n), static_cast<int>(steps), static_cast<int>(per_split)};
  const kbh::sealed::Launch launch = {
      .grid = {ceil_div(m, kXRows), ceil_div(n, kRows), splits}, .block = kThreads, .shared = sizeof(Shared<kXRows>)};

  auto scale = plan.state<float>(1);
  auto out = plan.output<uint16_t>(0);
  if (splits == 1) return plan.run(gemm<kXRows, uint16_t>, launch, weight_map, x_map, scale, out, size);

  auto parts = plan.scratch<float>(splits * m * n);
  plan.run(gemm<kXRows, float>, launch, weight_map, x_map, scale, parts, size);
  plan.run(add, {.grid = ceil_div(m * n, 256), .block = 256}, parts, scale, out, m * n, n, splits);
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t m = shape["M"], n = shape["N"], k = shape["K"];
  if (m <= 32) return plan_for<32>(plan, m, n, k);
  plan_for<128>(plan, m, n, k);
}
