// One decode step of attention over a paged KV cache: split the tokens, attend in parts, merge the parts.
//
// attend    one block per (split of the tokens, head of the cache, sequence). Its four warps take tiles of 16 tokens in
//           turn; a tile lies in one page. Each warp keeps a running softmax, and the block merges the four at the end.
// combine   one block per query head: merges the splits and rounds once.
//
// All query heads of a group (up to 16) read the same keys and values, so they are the rows of a matrix product:
//
//     scores (16 heads x 16 tokens) = Q (16 x D) K^T (D x 16)      out (16 x D) += P (16 x 16 tokens) V (16 tokens x D)
//
// both by mma.sync m16n8k16, bf16 in and fp32 out. Operands go from global memory to registers, without shared memory:
// a sum does not care in which order its terms come, so the "k" index of the first product is dealt to lanes such that
// each lane's eight elements are neighbours in memory (one 16-byte load); the columns of the second likewise.
// The accumulator of the scores has the layout that the second product wants its left operand in.
#include <kbh/sealed.h>

#include <cmath>
#include <cstdint>

#include <kbh/numbers.hpp>

namespace {

constexpr int kTile = 16;   // tokens; divides every page size
constexpr int kWarps = 4;   // of an attending block
constexpr int kHeads = 16;  // rows of a product: query heads of a group, the rest is padding
constexpr float kNone = -INFINITY;

struct Sizes {
  int num_heads;
  int num_kv_heads;
  int pages_per_seq;
  int page_size;
  int split;   // tokens of a split, a multiple of kTile
  int splits;  // of the longest sequence
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

/// Two floats rounded to bf16, `low` in the lower half.
__device__ uint32_t pack_bf16(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

__device__ float low_half(uint32_t both) { return __uint_as_float(both << 16); }
__device__ float high_half(uint32_t both) { return __uint_as_float(both & 0xffff0000u); }

/// 16 bytes, or zeros: what lies beyond a sequence's end may be NaN, and 0 x NaN is not 0.
__device__ uint4 load_if(bool valid, const uint16_t* from) {
  return valid ? __ldg(reinterpret_cast<const uint4*>(from)) : make_uint4(0, 0, 0, 0);
}

/// The largest, or the sum, over the four lanes that share the rows g and g + 8 of an accumulator.
__device__ float max_of_quad(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ float sum_of_quad(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// A running softmax of 16 heads, spread over a warp. [0] belongs to head g, [1] to head g + 8.
template <int D>
struct Running {
  float largest[2] = {kNone, kNone};  // score so far, in units of log2
  float total[2] = {0, 0};            // this lane's share of the weights
  float out[D / 8][4] = {};           // block of 8 columns -> accumulator
};

template <int D>
struct Tile {
  uint4 keys[2][D / 32];    // tokens g and g + 8; chunk c holds columns 32 c + 8 t ...
  uint4 values[4][D / 64];  // tokens 2t, 2t+1, 2t+8, 2t+9; chunk c holds columns 64 c + 8 g ...
};

/// `page` points at the first of the tile's 16 tokens (this head's K); `count` of them are valid.
template <int D>
__device__ void load(Tile<D>& tile, const uint16_t* page, int64_t stride, int count, int g, int t) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const int token = g + 8 * n;
#pragma unroll
    for (int c = 0; c < D / 32; ++c) tile.keys[n][c] = load_if(token < count, page + token * stride + 32 * c + 8 * t);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int token = 2 * t + i % 2 + 8 * (i / 2);
#pragma unroll
    for (int c = 0; c < D / 64; ++c)
      tile.values[i][c] = load_if(token < count, page + token * stride + D + 64 * c + 8 * g);
  }
}

template <int D>
__device__ void attend_tile(Running<D>& running, const uint4 (&query)[2][D / 32], const Tile<D>& tile, int count,
                            float scale, int t) {
  // Scores: chunk c makes two products of 16 columns each; x, y are the k index 2t.. and 2t+8.. of the first, z, w of
  // the second. Both operands are dealt alike, that is all it takes.
  float score[2][4] = {};
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int c = 0; c < D / 32; ++c) {
      const uint4 &upper = query[0][c], &lower = query[1][c], &key = tile.keys[n][c];
      mma_bf16(score[n], {upper.x, lower.x, upper.y, lower.y}, {key.x, key.y});
      mma_bf16(score[n], {upper.z, lower.z, upper.w, lower.w}, {key.z, key.w});
    }

  // The weights, relative to the largest score so far. The tile has a valid token, so that is finite.
  uint32_t weights[4];  // the left operand of the second product
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = running.largest[half];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& s = score[n][2 * half + i];
        s = 8 * n + 2 * t + i < count ? s * scale : kNone;
        largest = fmaxf(largest, s);
      }
    largest = max_of_quad(largest);
    const float fade = exp2f(running.largest[half] - largest);  // 0 the first time
    running.largest[half] = largest;
    running.total[half] *= fade;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float* s = &score[n][2 * half];
      const uint32_t pair = pack_bf16(exp2f(s[0] - largest), exp2f(s[1] - largest));
      running.total[half] += low_half(pair) + high_half(pair);  // of the rounded weights: they must sum to 1
      weights[half + 2 * n] = pair;
    }
#pragma unroll
    for (int block = 0; block < D / 8; ++block) {
      running.out[block][2 * half] *= fade;
      running.out[block][2 * half + 1] *= fade;
    }
  }

  // Values: block 8 c + j takes columns 64 c + 8 g + j. A right operand wants two tokens of one column in a register,
  // memory has two columns of one token: byte permutations swap them.
#pragma unroll
  for (int c = 0; c < D / 64; ++c) {
    const uint32_t* row[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) row[i] = &tile.values[i][c].x;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const uint32_t halves = j % 2 == 0 ? 0x5410 : 0x7632;
      mma_bf16(running.out[8 * c + j], weights,
               {__byte_perm(row[0][j / 2], row[1][j / 2], halves), __byte_perm(row[2][j / 2], row[3][j / 2], halves)});
    }
  }
}

/// What a warp, and then a block, hands on. Largest and total of a head, and the sums that belong to them.
template <int D>
struct Part {
  float largest[kHeads];
  float total[kHeads];
  float out[kHeads][D];
};

template <int D>
__device__ void put(Part<D>& part, const Running<D>& running, int g, int t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int head = g + 8 * half;
    const float total = sum_of_quad(running.total[half]);
    if (t == 0) {
      part.largest[head] = running.largest[half];
      part.total[head] = total;
    }
#pragma unroll
    for (int block = 0; block < D / 8; ++block)
#pragma unroll
      for (int i = 0; i < 2; ++i)  // the accumulator's column 2t + i is column 8 (2t + i) + j of its 64
        part.out[head][64 * (block / 8) + 8 * (2 * t + i) + block % 8] = running.out[block][2 * half + i];
  }
}

/// parts: (batch * num_heads, splits) times D sums, and as many pairs of largest and total.
/// Three blocks on a multiprocessor, 8 KB of tile on the way to each of their twelve warps.
template <int D>
__global__ void __launch_bounds__(kWarps * 32, 3)
    attend(const uint16_t* query, const uint16_t* cache, const int32_t* block_table, const int32_t* seq_lens,
           float* part_out, float2* part_weight, Sizes size, float scale) {
  const int split = blockIdx.x, kv_head = blockIdx.y, sequence = blockIdx.z;
  const int length = seq_lens[sequence];
  const int first = split * size.split;
  if (first >= length) return;
  const int last = min(length, first + size.split);

  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int group = size.num_heads / size.num_kv_heads;
  const int row0 = sequence * size.num_heads + kv_head * group;
  const int64_t stride = int64_t{size.num_kv_heads} * 2 * D;  // from token to token

  uint4 q[2][D / 32];
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int c = 0; c < D / 32; ++c)
      q[half][c] = load_if(g + 8 * half < group, query + int64_t{row0 + g + 8 * half} * D + 32 * c + 8 * t);

  const int32_t* table = block_table + int64_t{sequence} * size.pages_per_seq;
  Running<D> running;
  for (int token = first + warp * kTile; token < last; token += kWarps * kTile) {
    const int64_t page = table[token / size.page_size];
    const uint16_t* tokens = cache + (page * size.page_size + token % size.page_size) * stride + kv_head * 2 * D;
    const int count = min(kTile, last - token);
    Tile<D> tile;
    load(tile, tokens, stride, count, g, t);
    attend_tile(running, q, tile, count, scale, t);
  }

  // A warp without a tile hands on weight 0. The first one always had a tile, so the block's largest score is finite.
  __shared__ Part<D> parts[kWarps];
  put(parts[warp], running, g, t);
  __syncthreads();
  for (int i = threadIdx.x; i < group * D; i += kWarps * 32) {
    const int head = i / D, column = i % D;
    float largest = kNone;
    for (const Part<D>& part : parts) largest = fmaxf(largest, part.largest[head]);
    float total = 0, out = 0;
    for (const Part<D>& part : parts) {
      const float weight = exp2f(part.largest[head] - largest);
      total += weight * part.total[head];
      out += weight * part.out[head][column];
    }
    const int64_t place = int64_t{row0 + head} * size.splits + split;
    part_out[place * D + column] = out;
    if (column == 0) part_weight[place] = make_float2(largest, total);
  }
}

/// One block of D threads per query head.
template <int D>
__global__ void __launch_bounds__(D)
    combine(const float* part_out, const float2* part_weight, const int32_t* seq_lens, uint16_t* out, Sizes size) {
  const int row = blockIdx.x;
  const int used = (seq_lens[row / size.num_heads] + size.split - 1) / size.split;
  const float2* weights = part_weight + int64_t{row} * size.splits;
  const float* sums = part_out + int64_t{row} * size.splits * D + threadIdx.x;

  float largest = kNone;
  for (int i = 0; i < used; ++i) largest = fmaxf(largest, weights[i].x);
  float total = 0, sum = 0;
  for (int i = 0; i < used; ++i) {
    const float weight = exp2f(weights[i].x - largest);
    total += weight * weights[i].y;
    sum += weight * sums[int64_t{i} * D];
  }
  out[int64_t{row} * D + threadIdx.x] = kbh::to_bf16(sum / total);
}

/// Short splits fill the machine, many of them cost traffic of their own: 256 tokens, and at most 64 splits.
int split_of(int64_t seq_len) {
  const int64_t least = (seq_len + 63) / 64;
  return static_cast<int>((least < 256 ? 256 : least) + kTile - 1) / kTile * kTile;
}

template <int D>
void plan_for(const kbh::sealed::Shape& shape, kbh::sealed::Plan& plan) {
  const int64_t batch = shape["batch"], seq_len = shape["seq_len"];
  Sizes size{};
  size.num_heads = static_cast<int>(shape["num_heads"]);
  size.num_kv_heads = static_cast<int>(shape["num_kv_heads"]);
  size.page_size = static_cast<int>(shape["page_size"]);
  size.pages_per_seq = static_cast<int>((seq_len + size.page_size - 1) / size.page_size);
  size.split = split_of(seq_len);
  size.splits = static_cast<int>((seq_len + size.split - 1) / size.split);

  const int64_t rows = batch * size.num_heads;
  auto part_out = plan.scratch<float>(rows * size.splits * D);
  auto part_weight = plan.scratch<float2>(rows * size.splits);
  auto seq_lens = plan.input<int32_t>(3);
  // Scores in units of log2, so that a weight is one exp2.
  const float scale = 1.44269504f / sqrtf(static_cast<float>(D));
  plan.run(attend<D>, {.grid = {size.splits, size.num_kv_heads, batch}, .block = kWarps * 32}, plan.input<uint16_t>(0),
           plan.input<uint16_t>(1), plan.input<int32_t>(2), seq_lens, part_out, part_weight, size, scale);
  plan.run(combine<D>, {.grid = rows, .block = D}, part_out, part_weight, seq_lens, plan.output<uint16_t>(0), size);
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  if (shape["head_dim"] == 128) return plan_for<128>(shape, plan);
  plan.require(shape["head_dim"] == 64, "head_dim is 64 or 128");
  plan_for<64>(shape, plan);
}
