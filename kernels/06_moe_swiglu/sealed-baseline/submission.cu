// out = silu(hidden W_gate[e]) * (hidden W_up[e]), expert e by expert: a grouped matrix product whose groups are as
// long as the routing says, known only when the call comes.
//
// A block makes 128 rows x 128 columns of out. It multiplies its rows by 128 columns of W_gate and the same 128 of
// W_up, side by side as 256 columns, and a warp gets the same 32 of either: gate and up of an element end in one
// thread's registers, where the activation joins them.
//
//   tiles      row tiles are numbered so that any block finds its expert by a binary search, see find_tile
//   pipeline   four stages of 32 k in shared memory, filled by cp.async
//   warps      2 x 4, each 64 rows x (32 + 32) columns: ldmatrix, mma.sync m16n8k16, fp32 sums
#include <kbh/sealed.h>

#include <cstdint>

namespace {

constexpr int kRows = 128;     // of a block
constexpr int kColumns = 128;  // of a block, gate and up each
constexpr int kDepth = 32;     // of a stage
constexpr int kStages = 4;
constexpr int kWarpRows = 64;
constexpr int kWarpColumns = 32;
constexpr int kThreads = 32 * (kRows / kWarpRows) * (kColumns / kWarpColumns);  // 256

// Bytes from row to row in shared memory: 16 more than the data, so that eight rows' 16 bytes lie in different banks.
constexpr int kHiddenPitch = 2 * kDepth + 16;
constexpr int kWeightPitch = 2 * 2 * kColumns + 16;
constexpr int kHiddenBytes = kRows * kHiddenPitch;
constexpr int kStageBytes = kHiddenBytes + kDepth * kWeightPitch;

struct Sizes {
  int experts;
  int width;    // H, the length of a sum
  int columns;  // I
};

/// d += a b: a 16 x 16 (row major), b 16 x 8 (column major), d 16 x 8. With g = lane / 4 and t = lane % 4:
///   a[0], a[1]  row g and g + 8, columns 2t, 2t+1       a[2], a[3]  the same rows, columns 2t+8, 2t+9
///   b[0], b[1]  column g, rows 2t, 2t+1 and 2t+8, 2t+9
///   d[0], d[1]  row g, columns 2t, 2t+1                 d[2], d[3]  row g + 8
__device__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Four 8 x 8 matrices of bf16; lanes 8i .. 8i+7 name the rows of matrix i. Lane (g, t) gets row g, columns 2t, 2t+1.
__device__ void load_matrices(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}
/// The same, transposed: lane (g, t) gets column g, rows 2t, 2t+1.
__device__ void load_matrices_transposed(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

/// Two floats rounded to bf16, `low` in the lower half.
__device__ uint32_t pack_bf16(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

/// 16 bytes to shared memory in the background, or zeros.
__device__ void copy_async_16(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most kLeft of this thread's latest commits are under way.
template <int kLeft>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

struct Tile {
  int expert;
  int64_t first_row;
  int64_t end_row;  // of the expert
};

/// Expert e gets the numbers from offsets[e] / 128 + e on. That is enough: its rows reach into at most
/// offsets[e+1] / 128 - offsets[e] / 128 + 1 tiles, wherever they begin. Now and then a number is left over; its tile
/// begins at or behind the expert's end.
__device__ Tile find_tile(const int32_t* offsets, int experts, int number) {
  int expert = 0;
  for (int beyond = experts; beyond - expert > 1;) {  // first(expert) <= number < first(beyond)
    const int middle = (expert + beyond) / 2;
    (offsets[middle] / kRows + middle <= number ? expert : beyond) = middle;
  }
  const int64_t begin = offsets[expert];
  return {expert, begin + int64_t{number - (static_cast<int>(begin) / kRows + expert)} * kRows, offsets[expert + 1]};
}

/// A block's sources. Everything outside is zeros: rows of other experts, columns beyond I, k beyond H.
struct Sources {
  const uint16_t* hidden;  // the tile's first row
  const uint16_t* gate;    // the expert's matrices at the tile's first column
  const uint16_t* up;
  int rows;     // valid ones
  int columns;  // valid ones
};

__device__ void fetch(char* stage, const Sources& from, int first_k, const Sizes& size) {
  constexpr int kPieces = kDepth / 8;  // 16-byte pieces of a row of hidden
  for (int i = threadIdx.x; i < kRows * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces, k = first_k + 8 * piece;
    const bool valid = row < from.rows && k < size.width;
    copy_async_16(stage + row * kHiddenPitch + 16 * piece, from.hidden + (valid ? int64_t{row} * size.width + k : 0),
                  valid);
  }
  constexpr int kHalf = kColumns / 8;  // pieces of a row of one matrix
  char* weights = stage + kHiddenBytes;
  for (int i = threadIdx.x; i < kDepth * 2 * kHalf; i += kThreads) {
    const int row = i / (2 * kHalf), piece = i % (2 * kHalf), k = first_k + row, column = piece % kHalf * 8;
    const bool valid = k < size.width && column < from.columns;
    const uint16_t* matrix = piece < kHalf ? from.gate : from.up;
    copy_async_16(weights + row * kWeightPitch + 16 * piece, matrix + (valid ? int64_t{k} * size.columns + column : 0),
                  valid);
  }
}

constexpr int kRowBlocks = kWarpRows / 16;       // 4
constexpr int kColumnBlocks = kWarpColumns / 8;  // 4 of gate, 4 of up
using Sums = float[kRowBlocks][2][kColumnBlocks][4];

/// One stage of a warp's product.
__device__ void multiply(Sums& sums, const char* stage, int warp_row, int warp_column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    uint32_t a[kRowBlocks][4];
#pragma unroll
    for (int block = 0; block < kRowBlocks; ++block)
      load_matrices(a[block], stage + (warp_row + 16 * block + lane % 16) * kHiddenPitch + 2 * (k + 8 * (lane / 16)));

    const char* weights = stage + kHiddenBytes + (k + lane % 16) * kWeightPitch;
#pragma unroll
    for (int matrix = 0; matrix < 2; ++matrix)
#pragma unroll
      for (int pair = 0; pair < kColumnBlocks / 2; ++pair) {
        uint32_t b[4];  // two blocks of 8 columns
        load_matrices_transposed(b, weights + 2 * (matrix * kColumns + warp_column + 16 * pair + 8 * (lane / 16)));
#pragma unroll
        for (int block = 0; block < kRowBlocks; ++block) {
          mma_bf16(sums[block][matrix][2 * pair], a[block], {b[0], b[1]});
          mma_bf16(sums[block][matrix][2 * pair + 1], a[block], {b[2], b[3]});
        }
      }
  }
}

/// Where e^-gate overflows, the quotient is the right zero.
__device__ float swiglu(float gate, float up) { return gate / (1.0f + __expf(-gate)) * up; }

__global__ void __launch_bounds__(kThreads) moe(const uint16_t* w_gate, const uint16_t* w_up, const uint16_t* hidden,
                                                const int32_t* expert_offsets, uint16_t* out, Sizes size) {
  extern __shared__ __align__(16) char shared[];
  const auto stage = [&](int step) { return shared + step % kStages * kStageBytes; };

  const Tile tile = find_tile(expert_offsets, size.experts, blockIdx.y);
  if (tile.first_row >= tile.end_row) return;
  const int first_column = blockIdx.x * kColumns;
  const int64_t matrix = int64_t{tile.expert} * size.width * size.columns + first_column;
  const Sources from = {hidden + tile.first_row * size.width, w_gate + matrix, w_up + matrix,
                        static_cast<int>(min(int64_t{kRows}, tile.end_row - tile.first_row)),
                        min(kColumns, size.columns - first_column)};

  const int steps = (size.width + kDepth - 1) / kDepth;
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) fetch(stage(step), from, step * kDepth, size);
    commit_copies();
  }

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp % (kRows / kWarpRows) * kWarpRows;
  const int warp_column = warp / (kRows / kWarpRows) * kWarpColumns;
  Sums sums = {};
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    __syncthreads();  // this stage is there for all, and all are done with the one that is filled next
    if (const int ahead = step + kStages - 1; ahead < steps) fetch(stage(ahead), from, ahead * kDepth, size);
    commit_copies();
    multiply(sums, stage(step), warp_row, warp_column);
  }

#pragma unroll
  for (int block = 0; block < kRowBlocks; ++block)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row + 16 * block + 8 * half + lane / 4;
      if (row >= from.rows) continue;
      uint16_t* to = out + (tile.first_row + row) * size.columns + first_column;
#pragma unroll
      for (int j = 0; j < kColumnBlocks; ++j) {
        const int column = warp_column + 8 * j + 2 * (lane % 4);
        if (column >= from.columns) continue;
        const float* gate = &sums[block][0][j][2 * half];
        const float* up = &sums[block][1][j][2 * half];
        *reinterpret_cast<uint32_t*>(to + column) = pack_bf16(swiglu(gate[0], up[0]), swiglu(gate[1], up[1]));
      }
    }
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t rows = shape["T_total"] * shape["K"];
  const Sizes size = {static_cast<int>(shape["E"]), static_cast<int>(shape["H"]), static_cast<int>(shape["I"])};
  // Column tiles vary fastest: blocks that run together share few experts, whose weights then stay in the cache.
  const int64_t column_tiles = (size.columns + kColumns - 1) / kColumns;
  plan.run(moe,
           {.grid = {column_tiles, rows / kRows + size.experts}, .block = kThreads, .shared = kStages * kStageBytes},
           plan.state<uint16_t>(0), plan.state<uint16_t>(1), plan.input<uint16_t>(0), plan.input<int32_t>(1),
           plan.output<uint16_t>(0), size);
}
