// Kimi Delta Attention in chunks of 64 tokens: what does not depend on the memory first, for all chunks at once; then
// the chain of chunks.
//
// With G the sums of g from the chunk's first token on, S the memory before the chunk, and all exponents of base 2:
//
//   pairs      L[i][j] = beta_i sum_d k_i exp(G_i - G_j) k_j  (j < i)     P[i][j] = K^-1/2 sum_d q_i exp(..) k_j  (j <=
//   i) solve      A = (I + L)^-1 diag(beta) chain      w = A (v - (k exp G) S)     o = K^-1/2 (q exp G) S + P w     S
//   <- exp(G_last) S + (k exp(G_last - G))^T w
//
//   prepare    one block per chunk of a head: L, P, A and the three scaled copies of k and q, to scratch. No v in it.
//   scan       one block per head and 16 columns of v: columns of S never meet. S stays in registers, fp32; products by
//              mma.sync with bf16 operands
//
// exp(G_i - G_j) must not be split into exp(G_i) exp(-G_j): the second overflows where gates are strong. Between blocks
// of 16 tokens it is split at the end of the token before block i: both factors fade. Inside a block, keys are faded
// token by token, in fp32.
#include <kbh/sealed.h>

#include <cmath>
#include <cstdint>

#include <kbh/numbers.hpp>

namespace {

constexpr int kChunk = 64;  // tokens
constexpr int kBlock = 16;  // tokens; the rows of an mma
constexpr int kBlocks = kChunk / kBlock;
constexpr float kLog2E = 1.44269504f;

struct Sizes {
  int chunks;  // of a head
  int heads;
  int values;  // V
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
__device__ float low_half(uint32_t both) { return __uint_as_float(both << 16); }
__device__ float high_half(uint32_t both) { return __uint_as_float(both & 0xffff0000u); }

/// 2^x, 0 below the smallest normal number.
__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 16 bytes to shared memory in the background.
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

// ---- prepare

constexpr int kPrepareThreads = 256;

/// Small enough for two blocks on a multiprocessor. `gates` makes room for operands when the diagonal blocks are done.
template <int K>
struct Prepared {
  static constexpr int kPitch = K + 8;  // of operands: eight rows' 16 bytes lie in different banks

  float sums[kChunk][K];  // G
  union {
    float gates[kChunk][K];  // exp(g)
    struct {
      uint16_t rows[2 * kBlock][kPitch];                 // 16 keys of a block, its 16 queries
      uint16_t columns[(kBlocks - 1) * kBlock][kPitch];  // the keys of all blocks before
      float product[kBlock][(kBlocks - 1) * kBlock];
    };
  };
  uint16_t keys[kChunk][K];
  uint16_t queries[kChunk][K];
  float lower[kChunk][kChunk + 1];  // L, then the inverse of I + L
  float beta[kChunk];
};

template <int K>
__device__ void load_chunk(Prepared<K>& s, const uint16_t* q, const uint16_t* k, const float* g, const uint16_t* beta,
                           int64_t first_row, int heads) {
  for (int i = threadIdx.x; i < kChunk * K / 4; i += kPrepareThreads) {
    const int token = i / (K / 4), channel = i % (K / 4) * 4;
    const int64_t from = (first_row + int64_t{token} * heads) * K + channel;
    *reinterpret_cast<uint2*>(&s.keys[token][channel]) = *reinterpret_cast<const uint2*>(k + from);
    *reinterpret_cast<uint2*>(&s.queries[token][channel]) = *reinterpret_cast<const uint2*>(q + from);
    const float4 gate = *reinterpret_cast<const float4*>(g + from);
    const float4 log2 = make_float4(gate.x * kLog2E, gate.y * kLog2E, gate.z * kLog2E, gate.w * kLog2E);
    *reinterpret_cast<float4*>(&s.sums[token][channel]) = log2;
    *reinterpret_cast<float4*>(&s.gates[token][channel]) =
        make_float4(exp2_fast(log2.x), exp2_fast(log2.y), exp2_fast(log2.z), exp2_fast(log2.w));
  }
  if (threadIdx.x < kChunk) s.beta[threadIdx.x] = kbh::from_bf16(beta[first_row + int64_t{threadIdx.x} * heads]);
  __syncthreads();

  if (threadIdx.x < K) {  // sums down the tokens, a thread per channel
    float sum = 0;
#pragma unroll 8
    for (int token = 0; token < kChunk; ++token) {
      sum += s.sums[token][threadIdx.x];
      s.sums[token][threadIdx.x] = sum;
    }
  }
  __syncthreads();
}

__device__ void sum_over_8_lanes(float& x) {
  for (int bit = 1; bit < 8; bit *= 2) x += __shfl_xor_sync(0xffffffffu, x, bit);
}

/// L and P inside the blocks of 16. 64 threads a block: thread (pair, part) fades the keys of tokens `pair` and
/// `pair` + 8 along the block, on an eighth of the channels.
template <int K>
__device__ void diagonal_pairs(Prepared<K>& s, uint16_t* pairs, float scale) {
  constexpr int kQuads = K / 32;  // of channels; quad m of a part begins at channel 4 (part + 8 m)
  const int part = threadIdx.x % 8, pair = threadIdx.x / 8 % 8, first = threadIdx.x / 64 * kBlock;
  float faded[2][kQuads * 4] = {};
  for (int i = 0; i < kBlock; ++i) {
    const int token = first + i;
    float key_product[2] = {}, query_product[2] = {};
#pragma unroll
    for (int m = 0; m < kQuads; ++m) {
      const int channel = 4 * (part + 8 * m);
      const float4 gate = *reinterpret_cast<const float4*>(&s.gates[token][channel]);
      const uint2 key = *reinterpret_cast<const uint2*>(&s.keys[token][channel]);
      const uint2 query = *reinterpret_cast<const uint2*>(&s.queries[token][channel]);
      const float gates[4] = {gate.x, gate.y, gate.z, gate.w};
      const float keys[4] = {low_half(key.x), high_half(key.x), low_half(key.y), high_half(key.y)};
      const float queries[4] = {low_half(query.x), high_half(query.x), low_half(query.y), high_half(query.y)};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (i < 8 * half) continue;  // the later key has not come yet
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          float& f = faded[half][4 * m + c];  // 0 before its token
          f = i == pair + 8 * half ? keys[c] : f * gates[c];
          key_product[half] += keys[c] * f;
          query_product[half] += queries[c] * f;
        }
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sum_over_8_lanes(key_product[half]);
      sum_over_8_lanes(query_product[half]);
      if (part != 0) continue;
      const int j = first + pair + 8 * half;
      s.lower[token][j] = token > j ? s.beta[token] * key_product[half] : 0;
      pairs[token * kChunk + j] = kbh::to_bf16(scale * query_product[half]);
    }
  }
  __syncthreads();
}

/// L and P of block row `block` and all blocks before it.
template <int K>
__device__ void pairs_with_former(Prepared<K>& s, int block, uint16_t* pairs, float scale) {
  const int first = block * kBlock;
  const float* anchor = s.sums[first - 1];
  for (int i = threadIdx.x; i < (kBlock + first) * K; i += kPrepareThreads) {
    const int row = i / K, channel = i % K;
    if (row < kBlock) {
      const float fade = exp2_fast(s.sums[first + row][channel] - anchor[channel]);
      s.rows[row][channel] = kbh::to_bf16(kbh::from_bf16(s.keys[first + row][channel]) * fade);
      s.rows[kBlock + row][channel] = kbh::to_bf16(kbh::from_bf16(s.queries[first + row][channel]) * fade);
    } else {
      const int token = row - kBlock;
      const float fade = exp2_fast(anchor[channel] - s.sums[token][channel]);
      s.columns[token][channel] = kbh::to_bf16(kbh::from_bf16(s.keys[token][channel]) * fade);
    }
  }
  __syncthreads();

  // A task is 16 keys or 16 queries times 8 former keys.
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int task = warp; task < 2 * (first / 8); task += kPrepareThreads / 32) {
    const bool is_query = task % 2 != 0;
    const int column = task / 2 * 8;
    float d[4] = {};
#pragma unroll
    for (int k = 0; k < K; k += 16) {
      const uint16_t* upper = &s.rows[g + (is_query ? kBlock : 0)][k + 2 * t];
      const uint16_t* lower = upper + 8 * Prepared<K>::kPitch;
      const uint16_t* key = &s.columns[column + g][k + 2 * t];
      const auto two = [](const uint16_t* from) { return *reinterpret_cast<const uint32_t*>(from); };
      mma_bf16(d, {two(upper), two(lower), two(upper + 8), two(lower + 8)}, {two(key), two(key + 8)});
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = first + g + 8 * half, j = column + 2 * t;
      if (is_query) {
        *reinterpret_cast<uint32_t*>(pairs + token * kChunk + j) =
            pack_bf16(scale * d[2 * half], scale * d[2 * half + 1]);
      } else {
        s.lower[token][j] = s.beta[token] * d[2 * half];
        s.lower[token][j + 1] = s.beta[token] * d[2 * half + 1];
      }
    }
  }
  __syncthreads();
}

/// (I + L)^-1 in the place of L, all in fp32. Blocks on the diagonal by substitution, a thread per column; then block
/// row after block row: T = -D (L T_above), with D the row's own diagonal block.
template <int K>
__device__ void invert(Prepared<K>& s) {
  if (threadIdx.x < kChunk) {
    const int first = threadIdx.x / kBlock * kBlock, column = threadIdx.x % kBlock;
    float x[kBlock];
#pragma unroll
    for (int i = 0; i < kBlock; ++i) {
      x[i] = i == column ? 1 : 0;
#pragma unroll
      for (int m = 0; m < i; ++m) x[i] -= s.lower[first + i][first + m] * x[m];
    }
    __syncwarp();  // 16 threads share a block, and all of them have read it
#pragma unroll
    for (int i = 0; i < kBlock; ++i) s.lower[first + i][first + column] = x[i];
  }
  __syncthreads();

  for (int first = kBlock; first < kChunk; first += kBlock) {
    for (int i = threadIdx.x; i < kBlock * first; i += kPrepareThreads) {
      const int row = i / first, column = i % first;
      float sum = 0;
      for (int m = column / kBlock * kBlock; m < first; ++m) sum += s.lower[first + row][m] * s.lower[m][column];
      s.product[row][column] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kBlock * first; i += kPrepareThreads) {
      const int row = i / first, column = i % first;
      float sum = 0;
      for (int m = 0; m <= row; ++m) sum -= s.lower[first + row][first + m] * s.product[m][column];
      s.lower[first + row][column] = sum;
    }
    __syncthreads();
  }
}

/// grid: (chunks, chains), a chain being a head of a sequence. Outputs by chunk: keys_in, queries_in, keys_out (64, K);
/// solve (2, 64, 64), pairs (64, 64); fade (K). solve is the sum of two bf16 matrices: where keys are alike, w fades
/// because its terms cancel, and what one bf16 rounds off of A would add up over the chunk instead.
template <int K>
__global__ void __launch_bounds__(kPrepareThreads, 2)
    prepare(const uint16_t* q, const uint16_t* k, const float* g, const uint16_t* beta, uint16_t* keys_in,
            uint16_t* queries_in, uint16_t* keys_out, uint16_t* solve, uint16_t* pairs, float* fade, Sizes size,
            float scale) {
  extern __shared__ __align__(16) uint8_t bytes[];
  auto& s = *reinterpret_cast<Prepared<K>*>(bytes);
  const int chunk = blockIdx.x, chain = blockIdx.y;
  const int64_t tokens = int64_t{size.chunks} * kChunk;
  const int64_t first_row = (chain / size.heads * tokens + int64_t{chunk} * kChunk) * size.heads + chain % size.heads;
  const int64_t unit = int64_t{chain} * size.chunks + chunk;
  pairs += unit * kChunk * kChunk;
  solve += unit * 2 * kChunk * kChunk;

  load_chunk(s, q, k, g, beta, first_row, size.heads);
  diagonal_pairs(s, pairs, scale);
  for (int block = 1; block < kBlocks; ++block) pairs_with_former(s, block, pairs, scale);
  invert(s);

  for (int i = threadIdx.x; i < kChunk * kChunk; i += kPrepareThreads) {
    const int row = i / kChunk, column = i % kChunk;
    const bool above = column / kBlock > row / kBlock;  // blocks that nobody has written yet
    const float exact = above ? 0 : s.lower[row][column] * s.beta[column];
    const uint16_t rounded = kbh::to_bf16(exact);
    solve[i] = rounded;
    solve[kChunk * kChunk + i] = kbh::to_bf16(exact - kbh::from_bf16(rounded));
    if (above) pairs[i] = 0;
  }
  const float* last = s.sums[kChunk - 1];
  for (int i = threadIdx.x; i < kChunk * K / 2; i += kPrepareThreads) {
    const int token = i / (K / 2), channel = i % (K / 2) * 2;
    const float2 sum = *reinterpret_cast<const float2*>(&s.sums[token][channel]);
    const uint32_t key = *reinterpret_cast<const uint32_t*>(&s.keys[token][channel]);
    const uint32_t query = *reinterpret_cast<const uint32_t*>(&s.queries[token][channel]);
    const float2 in = make_float2(exp2_fast(sum.x), exp2_fast(sum.y));
    const float2 out = make_float2(exp2_fast(last[channel] - sum.x), exp2_fast(last[channel + 1] - sum.y));
    const int64_t at = (unit * kChunk + token) * (K / 2) + channel / 2;
    reinterpret_cast<uint32_t*>(keys_in)[at] = pack_bf16(low_half(key) * in.x, high_half(key) * in.y);
    reinterpret_cast<uint32_t*>(queries_in)[at] =
        pack_bf16(scale * low_half(query) * in.x, scale * high_half(query) * in.y);
    reinterpret_cast<uint32_t*>(keys_out)[at] = pack_bf16(low_half(key) * out.x, high_half(key) * out.y);
  }
  if (threadIdx.x < K) fade[unit * K + threadIdx.x] = exp2_fast(last[threadIdx.x]);
}

// ---- scan

constexpr int kWarps = 4;  // 16 tokens each
constexpr int kScanThreads = 32 * kWarps;
constexpr int kColumns = 16;         // of v and S, in a block
constexpr int kThin = kColumns + 8;  // pitch of matrices of 16 columns

template <int K>
struct Scan {
  static constexpr int kPitch = K + 8;
  static constexpr int kSquare = kChunk + 8;
  struct Stage {
    uint16_t keys_in[kChunk][kPitch];
    uint16_t queries_in[kChunk][kPitch];
    uint16_t keys_out[kChunk][kPitch];
    uint16_t solve[2][kChunk][kSquare];
    uint16_t pairs[kChunk][kSquare];
    uint16_t values[kChunk][kColumns];
  } stages[2];
  // Right operands, in bf16.
  uint16_t memory[K][kThin];        // S
  uint16_t missing[kChunk][kThin];  // v - (k exp G) S
  uint16_t written[kChunk][kThin];  // w
};

/// Rows of `width` elements from `from` (`stride` apart) to rows of kPitch, in the background.
template <int kWidth, int kPitch>
__device__ void fetch(uint16_t (*to)[kPitch], const uint16_t* from, int64_t stride) {
  for (int i = threadIdx.x; i < kChunk * kWidth / 8; i += kScanThreads) {
    const int row = i / (kWidth / 8), piece = i % (kWidth / 8) * 8;
    copy_async_16(&to[row][piece], from + row * stride + piece, true);
  }
}

/// The right operand of two blocks of 8 columns, rows `first` .. first + 15.
__device__ void load_right(uint32_t (&b)[4], const uint16_t (*matrix)[kThin], int first) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(b, &matrix[first + lane % 16][8 * (lane / 16)]);
}

/// The left operand: rows `row` .. + 15, columns `column` .. + 15.
template <int kPitch>
__device__ void load_left(uint32_t (&a)[4], const uint16_t (*matrix)[kPitch], int row, int column) {
  const int lane = threadIdx.x % 32;
  load_matrices(a, &matrix[row + lane % 16][column + 8 * (lane / 16)]);
}
/// The left operand of a transposed matrix: its rows are columns of `matrix`.
template <int kPitch>
__device__ void load_left_transposed(uint32_t (&a)[4], const uint16_t (*matrix)[kPitch], int row, int column) {
  const int lane = threadIdx.x % 32;
  load_matrices_transposed(a, &matrix[column + lane % 8 + lane / 16 * 8][row + lane / 8 % 2 * 8]);
}

using Strip = float[2][4];  // accumulators of 16 rows x 16 columns

__device__ void multiply(Strip& d, const uint32_t (&a)[4], const uint32_t (&b)[4]) {
  mma_bf16(d[0], a, {b[0], b[1]});
  mma_bf16(d[1], a, {b[2], b[3]});
}

/// Accumulators to a right operand.
__device__ void store(uint16_t (*matrix)[kThin], int first, const Strip& strip) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int block = 0; block < 2; ++block)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<uint32_t*>(&matrix[first + g + 8 * half][8 * block + 2 * t]) =
          pack_bf16(strip[block][2 * half], strip[block][2 * half + 1]);
}

/// grid: (V / 16, chains)
template <int K>
__global__ void __launch_bounds__(kScanThreads)
    scan(const uint16_t* keys_in, const uint16_t* queries_in, const uint16_t* keys_out, const uint16_t* solve,
         const uint16_t* pairs, const float* fade, const uint16_t* v, uint16_t* o, Sizes size) {
  extern __shared__ __align__(16) uint8_t bytes[];
  auto& s = *reinterpret_cast<Scan<K>*>(bytes);
  const int chain = blockIdx.y, warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int first_token = warp * kBlock;
  const int64_t stride = int64_t{size.heads} * size.values;  // of v and o, from token to token
  const int64_t tokens = int64_t{size.chunks} * kChunk;
  const int64_t origin =
      (chain / size.heads * tokens * size.heads + chain % size.heads) * size.values + blockIdx.x * kColumns;

  const auto fetch_chunk = [&](int chunk) {
    auto& stage = s.stages[chunk % 2];
    const int64_t unit = int64_t{chain} * size.chunks + chunk;
    fetch<K>(stage.keys_in, keys_in + unit * kChunk * K, K);
    fetch<K>(stage.queries_in, queries_in + unit * kChunk * K, K);
    fetch<K>(stage.keys_out, keys_out + unit * kChunk * K, K);
    fetch<kChunk>(stage.solve[0], solve + unit * 2 * kChunk * kChunk, kChunk);
    fetch<kChunk>(stage.solve[1], solve + (unit * 2 + 1) * kChunk * kChunk, kChunk);
    fetch<kChunk>(stage.pairs, pairs + unit * kChunk * kChunk, kChunk);
    fetch<kColumns>(stage.values, v + origin + int64_t{chunk} * kChunk * stride, stride);
    commit_copies();
  };

  // A warp keeps a quarter of the channels of S.
  constexpr int kStrips = K / kWarps / 16;
  const int first_channel = warp * (K / kWarps);
  Strip memory[kStrips] = {};
#pragma unroll
  for (int i = 0; i < kStrips; ++i) store(s.memory, first_channel + 16 * i, memory[i]);

  fetch_chunk(0);
  for (int chunk = 0; chunk < size.chunks; ++chunk) {
    wait_copies<0>();
    __syncthreads();  // this chunk and S are there for all; all are done with the chunk before
    if (chunk + 1 < size.chunks) fetch_chunk(chunk + 1);
    const auto& stage = s.stages[chunk % 2];
    const float* fades = fade + (int64_t{chain} * size.chunks + chunk) * K + first_channel;
    float faded[kStrips][2];
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
      faded[i][0] = __ldg(fades + 16 * i + g);
      faded[i][1] = __ldg(fades + 16 * i + g + 8);
    }

    uint32_t a[4], b[4];
    Strip known = {}, answer = {};
#pragma unroll
    for (int k = 0; k < K; k += 16) {
      load_right(b, s.memory, k);
      load_left(a, stage.keys_in, first_token, k);
      multiply(known, a, b);
      load_left(a, stage.queries_in, first_token, k);
      multiply(answer, a, b);
    }
#pragma unroll
    for (int block = 0; block < 2; ++block)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t value =
            *reinterpret_cast<const uint32_t*>(&stage.values[first_token + g + 8 * half][8 * block + 2 * t]);
        known[block][2 * half] = low_half(value) - known[block][2 * half];
        known[block][2 * half + 1] = high_half(value) - known[block][2 * half + 1];
      }
    store(s.missing, first_token, known);
    __syncthreads();

    // Both triangles end at the warp's own block.
    Strip written = {};
    for (int k = 0; k <= first_token; k += 16) {
      load_right(b, s.missing, k);
#pragma unroll
      for (const auto& part : stage.solve) {
        load_left(a, part, first_token, k);
        multiply(written, a, b);
      }
    }
    store(s.written, first_token, written);
    __syncthreads();

#pragma unroll
    for (int i = 0; i < kStrips; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) memory[i][j / 4][j % 4] *= faded[i][j % 4 / 2];
#pragma unroll
    for (int k = 0; k < kChunk; k += 16) {
      load_right(b, s.written, k);
      if (k <= first_token) {
        load_left(a, stage.pairs, first_token, k);
        multiply(answer, a, b);
      }
#pragma unroll
      for (int i = 0; i < kStrips; ++i) {
        load_left_transposed(a, stage.keys_out, first_channel + 16 * i, k);
        multiply(memory[i], a, b);
      }
    }
#pragma unroll
    for (int i = 0; i < kStrips; ++i) store(s.memory, first_channel + 16 * i, memory[i]);

    uint16_t* out = o + origin + (int64_t{chunk} * kChunk + first_token) * stride;
#pragma unroll
    for (int block = 0; block < 2; ++block)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(out + (g + 8 * half) * stride + 8 * block + 2 * t) =
            pack_bf16(answer[block][2 * half], answer[block][2 * half + 1]);
  }
}

// ---- the plan

template <int K>
void plan_for(const kbh::sealed::Shape& shape, kbh::sealed::Plan& plan) {
  const int64_t chains = shape["B"] * shape["H"], values = shape["V"], chunks = shape["T"] / kChunk;
  const Sizes size = {static_cast<int>(chunks), static_cast<int>(shape["H"]), static_cast<int>(values)};
  const int64_t units = chains * chunks;
  auto keys_in = plan.scratch<uint16_t>(units * kChunk * K);
  auto queries_in = plan.scratch<uint16_t>(units * kChunk * K);
  auto keys_out = plan.scratch<uint16_t>(units * kChunk * K);
  auto solve = plan.scratch<uint16_t>(units * 2 * kChunk * kChunk);
  auto pairs = plan.scratch<uint16_t>(units * kChunk * kChunk);
  auto fade = plan.scratch<float>(units * K);
  const float scale = 1 / sqrtf(static_cast<float>(K));

  plan.run(prepare<K>, {.grid = {chunks, chains}, .block = kPrepareThreads, .shared = sizeof(Prepared<K>)},
           plan.input<uint16_t>(0), plan.input<uint16_t>(1), plan.input<float>(3), plan.input<uint16_t>(4), keys_in,
           queries_in, keys_out, solve, pairs, fade, size, scale);
  plan.run(scan<K>, {.grid = {values / kColumns, chains}, .block = kScanThreads, .shared = sizeof(Scan<K>)}, keys_in,
           queries_in, keys_out, solve, pairs, fade, plan.input<uint16_t>(2), plan.output<uint16_t>(0), size);
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  plan.require(shape["T"] % kChunk == 0, "T is a multiple of 64");
  if (shape["K"] == 128) return plan_for<128>(shape, plan);
  plan.require(shape["K"] == 64, "K is 64 or 128");
  plan_for<64>(shape, plan);
}
