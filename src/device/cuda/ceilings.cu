// What the ceilings of a GPU are measured with (measure.cpp). A kernel that an architecture lacks is not in its code:
// the host asks for each by name.
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "device/cuda/ceilings_loops.hpp"

using namespace kbh::cuda;

namespace {

__device__ unsigned mix(unsigned x) {
  x *= 0x9e3779b9U;
  x ^= x >> 15;
  x *= 0x85ebca6bU;
  x ^= x >> 13;
  x *= 0xc2b2ae35U;
  return x ^ x >> 16;
}

/// What no sum is but by chance, so that a store that depends on it keeps everything before it wanted.
constexpr unsigned kNever = 0x5eed1e55U;

// ---- Memory. A block's turn is one piece of memory, of which each of its warps has a piece: the loads of a thread are
// at fixed distances, and a load needs no arithmetic of its own.

constexpr int kWarp = 32;

struct Turns {
  std::uint64_t first, stride;
};

/// In units of 16 bytes, for this thread.
template <int kInFlight>
__device__ Turns turns() {
  const std::uint64_t piece = static_cast<std::uint64_t>(blockDim.x) * kInFlight;
  return {blockIdx.x * piece + threadIdx.x / kWarp * (kWarp * kInFlight) + threadIdx.x % kWarp, gridDim.x * piece};
}

__device__ uint4 load(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

template <int kInFlight>
__device__ void read(const uint4* data, std::uint64_t count, unsigned* sink) {
  const Turns t = turns<kInFlight>();
  unsigned sum = 0;
  for (std::uint64_t at = t.first; at < count; at += t.stride) {
    uint4 v[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) v[j] = load(data + at + j * kWarp);
      // The last one first: all are under way before the first is waited for.
#pragma unroll
    for (int j = kInFlight - 1; j >= 0; --j)
      asm volatile("xor.b32 %0, %0, %1;\nxor.b32 %0, %0, %2;\nxor.b32 %0, %0, %3;\nxor.b32 %0, %0, %4;"
                   : "+r"(sum)
                   : "r"(v[j].x), "r"(v[j].y), "r"(v[j].z), "r"(v[j].w));
  }
  if (sum == kNever) *sink = sum;
}

template <int kInFlight>
__device__ void write(uint4* data, std::uint64_t count) {
  const Turns t = turns<kInFlight>();
  const unsigned x = mix(threadIdx.x);
  for (std::uint64_t at = t.first; at < count; at += t.stride) {
#pragma unroll
    for (int j = 0; j < kInFlight; ++j)
      data[at + j * kWarp] = make_uint4(x, x ^ 0x55555555U, ~x, static_cast<unsigned>(at));
  }
}

template <int kInFlight>
__device__ void copy(uint4* to, const uint4* from, std::uint64_t count) {
  const Turns t = turns<kInFlight>();
  for (std::uint64_t at = t.first; at < count; at += t.stride) {
    uint4 v[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) v[j] = load(from + at + j * kWarp);
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) to[at + j * kWarp] = v[j];
  }
}

}  // namespace

extern "C" __global__ void kbh_fill(uint4* data, std::uint64_t count) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const unsigned x = mix(static_cast<unsigned>(i));
    data[i] = make_uint4(x, mix(x + 1), mix(x + 2), mix(x + 3));
  }
}

// `count` is in units of 16 bytes, a multiple of what a block moves in one turn. C names for template instances;
// bounds, or ptxas keeps six of eight loads in flight to stay within 32 registers.
#define KBH_MEMORY_LOOPS(n)                                                                              \
  extern "C" __global__ void __launch_bounds__(512, 2)                                                   \
      kbh_read_##n(const uint4* data, std::uint64_t count, unsigned* sink) {                             \
    read<n>(data, count, sink);                                                                          \
  }                                                                                                      \
  extern "C" __global__ void __launch_bounds__(512, 2) kbh_write_##n(uint4* data, std::uint64_t count) { \
    write<n>(data, count);                                                                               \
  }                                                                                                      \
  extern "C" __global__ void __launch_bounds__(512, 2)                                                   \
      kbh_copy_##n(uint4* to, const uint4* from, std::uint64_t count) {                                  \
    copy<n>(to, from, count);                                                                            \
  }
KBH_MEMORY_LOOPS(1)
KBH_MEMORY_LOOPS(2)
KBH_MEMORY_LOOPS(4)
KBH_MEMORY_LOOPS(8)

#if __CUDA_ARCH__ >= 900

// ---- Memory by bulk copies: blocks of one thread, a ring of stages in shared memory.

namespace {

constexpr unsigned kMostStages = 32;

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

/// The stages of one block, filled from global memory in turn.
class Ring {
 public:
  __device__ Ring(char* memory, std::uint64_t* full, unsigned bytes, unsigned stages)
      : memory_(memory), full_(full), bytes_(bytes) {
    for (unsigned s = 0; s < stages; ++s)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + s)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  __device__ void fill(unsigned stage, const char* from) {
    const unsigned barrier = shared_address(full_ + stage);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes_) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(at(stage))),
                 "l"(from), "r"(bytes_), "r"(barrier)
                 : "memory");
  }

  __device__ void wait(unsigned stage, unsigned parity) const {
    unsigned done = 0;
    while (done == 0)
      asm volatile(
          "{\n"
          "  .reg .pred done;\n"
          "  mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
          "  selp.u32 %0, 1, 0, done;\n"
          "}"
          : "=r"(done)
          : "r"(shared_address(full_ + stage)), "r"(parity)
          : "memory");
  }

  __device__ void drain(unsigned stage, char* to) const {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(at(stage))), "r"(bytes_)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }

 private:
  [[nodiscard]] __device__ char* at(unsigned stage) const { return memory_ + stage * bytes_; }

  char* memory_;
  std::uint64_t* full_;
  unsigned bytes_;
};

}  // namespace

/// `bytes`: a multiple of `stage_bytes`, that one of 16.
extern "C" __global__ void kbh_read_bulk(const char* data, std::uint64_t bytes, unsigned stage_bytes, unsigned stages) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ std::uint64_t full[kMostStages];
  Ring ring(memory, full, stage_bytes, stages);
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * stage_bytes;
  std::uint64_t next = static_cast<std::uint64_t>(blockIdx.x) * stage_bytes;
  std::uint64_t at = next;
  for (unsigned s = 0; s < stages && next < bytes; ++s, next += stride) ring.fill(s, data + next);
  unsigned stage = 0;
  unsigned parity = 0;
  for (; at < bytes; at += stride) {
    ring.wait(stage, parity);
    if (next < bytes) ring.fill(stage, data + next);
    next += stride;
    if (++stage == stages) stage = 0, parity ^= 1;
  }
}

/// The same piece of shared memory over and over.
extern "C" __global__ void kbh_write_bulk(char* data, std::uint64_t bytes, unsigned stage_bytes) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ std::uint64_t full[1];
  for (unsigned i = threadIdx.x; i < stage_bytes / 4; i += blockDim.x) reinterpret_cast<unsigned*>(memory)[i] = mix(i);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  const Ring ring(memory, full, stage_bytes, 1);
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * stage_bytes;
  for (std::uint64_t at = static_cast<std::uint64_t>(blockIdx.x) * stage_bytes; at < bytes; at += stride) {
    ring.drain(0, data + at);
    asm volatile("cp.async.bulk.wait_group.read 8;" ::: "memory");
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void kbh_copy_bulk(char* to, const char* from, std::uint64_t bytes, unsigned stage_bytes,
                                         unsigned stages) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ std::uint64_t full[kMostStages];
  Ring ring(memory, full, stage_bytes, stages);
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * stage_bytes;
  std::uint64_t next = static_cast<std::uint64_t>(blockIdx.x) * stage_bytes;
  std::uint64_t at = next;
  for (unsigned s = 0; s < stages && next < bytes; ++s, next += stride) ring.fill(s, from + next);
  unsigned stage = 0;
  unsigned parity = 0;
  unsigned before = stages;  // the stage that is being stored while this one is waited for; none at first
  for (; at < bytes; at += stride) {
    ring.wait(stage, parity);
    ring.drain(stage, to + at);
    if (before != stages) {
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      if (next < bytes) ring.fill(before, from + next);
      next += stride;
    }
    before = stage;
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#endif

// ---- Products. Operands are evenly distributed in (-1, 1): zeros, or always the same bits, would draw less power and
// keep a clock that no real product sees.

namespace {

/// Random sign and mantissa, an exponent by a run of zero bits.
template <int kExponentBits, int kMantissaBits>
__device__ unsigned random_float(unsigned seed) {
  constexpr int kHalf = (1 << (kExponentBits - 1)) - 2;  // exponent of [0.5, 1)
  const int zeros = min(__clz(static_cast<int>(mix(seed) | 1)), kHalf - 1);
  const unsigned bits = mix(seed ^ 0x5bd1e995U);
  const unsigned magnitude = static_cast<unsigned>(kHalf - zeros) << kMantissaBits | (bits >> (32 - kMantissaBits));
  return (bits & 1) << (kExponentBits + kMantissaBits) | magnitude;
}

template <int kExponentBits, int kMantissaBits>
__device__ unsigned random_word(unsigned seed) {
  constexpr int kBits = 1 + kExponentBits + kMantissaBits;
  unsigned word = 0;
  for (int at = 0; at < 32; at += kBits)
    word |= random_float<kExponentBits, kMantissaBits>(seed * (32 / kBits) + at / kBits) << at;
  return word;
}

// One instruction on one tile of 16 x 8: accumulators of four 32-bit registers, operands of four and two.
#define KBH_MMA(shape_and_types)                                                                                      \
  asm volatile("mma.sync.aligned." shape_and_types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

struct Bf16 {
  __device__ static unsigned word(unsigned seed) { return random_word<8, 7>(seed); }
  __device__ static void mma(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KBH_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  }
};

struct Fp16 {
  __device__ static unsigned word(unsigned seed) { return random_word<5, 10>(seed); }
  __device__ static void mma(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KBH_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  }
};

struct Tf32 {
  __device__ static unsigned word(unsigned seed) { return random_word<8, 23>(seed); }
  __device__ static void mma(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KBH_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
};

#if __CUDA_ARCH__ >= 890
struct E4m3 {
  __device__ static unsigned word(unsigned seed) { return random_word<4, 3>(seed); }
  __device__ static void mma(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KBH_MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32");
  }
};
#endif

struct Int8 {
  __device__ static unsigned word(unsigned seed) { return mix(seed); }
  __device__ static void mma(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KBH_MMA("m16n8k32.row.col.s32.s8.s8.s32");
  }
};

template <typename Format>
__device__ void mma_loop(int turns, unsigned* sink) {
  unsigned d[kMmaTiles][4] = {};
  unsigned a[kMmaSteps][4];
  unsigned b[kMmaTiles][2];
  for (int i = 0; i < kMmaSteps * 4; ++i) a[i / 4][i % 4] = Format::word(threadIdx.x * 64 + i);
  for (int i = 0; i < kMmaTiles * 2; ++i) b[i / 2][i % 2] = Format::word(threadIdx.x * 64 + 32 + i);
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step) {
#pragma unroll
      for (int tile = 0; tile < kMmaTiles; ++tile) Format::mma(d[tile], a[step], b[tile]);
    }
  }
  unsigned sum = 0;
  for (int i = 0; i < kMmaTiles * 4; ++i) sum ^= d[i / 4][i % 4];
  if (sum == kNever) *sink = sum;
}

}  // namespace

#define KBH_MMA_LOOP(name, Format) \
  extern "C" __global__ void kbh_mma_##name(int turns, unsigned* sink) { mma_loop<Format>(turns, sink); }
KBH_MMA_LOOP(bf16, Bf16)
KBH_MMA_LOOP(fp16, Fp16)
KBH_MMA_LOOP(tf32, Tf32)
KBH_MMA_LOOP(int8, Int8)
#if __CUDA_ARCH__ >= 890
KBH_MMA_LOOP(fp8_e4m3, E4m3)
#endif

/// Tensor-core products of 8 x 8 x 4 in fp64.
extern "C" __global__ void kbh_mma_fp64(int turns, unsigned* sink) {
  double d[kMmaTiles][2] = {};
  double a[kMmaSteps];
  double b[kMmaTiles];
  for (int i = 0; i < kMmaSteps; ++i) a[i] = static_cast<int>(mix(threadIdx.x * 64 + i)) * 0x1.8p-31;
  for (int i = 0; i < kMmaTiles; ++i) b[i] = static_cast<int>(mix(threadIdx.x * 64 + 32 + i)) * 0x1.8p-31;
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int step = 0; step < kMmaSteps; ++step) {
#pragma unroll
      for (int t = 0; t < kMmaTiles; ++t)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(d[t][0]), "+d"(d[t][1])
                     : "d"(a[step]), "d"(b[t]));
    }
  }
  double sum = 0;
  for (int i = 0; i < kMmaTiles * 2; ++i) sum += d[i / 2][i % 2];
  if (sum == 0.123456789) *sink = 1;
}

#if __CUDA_ARCH__ >= 900
/// The same by 16 x 8 x 16, which Hopper needs for its full rate.
extern "C" __global__ void kbh_wide_mma_fp64(int turns, unsigned* sink) {
  double d[kMmaTiles][4] = {};
  double a[8];
  double b[kMmaTiles][4];
  for (int i = 0; i < 8; ++i) a[i] = static_cast<int>(mix(threadIdx.x * 64 + i)) * 0x1.8p-31;
  for (int i = 0; i < kMmaTiles * 4; ++i)
    b[i / 4][i % 4] = static_cast<int>(mix(threadIdx.x * 64 + 32 + i)) * 0x1.8p-31;
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int t = 0; t < kMmaTiles; ++t)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
          "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
          : "+d"(d[t][0]), "+d"(d[t][1]), "+d"(d[t][2]), "+d"(d[t][3])
          : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[t][0]),
            "d"(b[t][1]), "d"(b[t][2]), "d"(b[t][3]));
  }
  double sum = 0;
  for (int i = 0; i < kMmaTiles * 4; ++i) sum += d[i / 4][i % 4];
  if (sum == 0.123456789) *sink = 1;
}
#endif

/// Fused multiply-adds of single precision. Every chain swings between two values: one that settled on one value, or
/// left the range, would draw less power.
extern "C" __global__ void kbh_fma_fp32(int turns, unsigned* sink) {
  const auto random = [](unsigned seed) { return __uint_as_float(random_float<8, 23>(threadIdx.x * 64 + seed)); };
  float x[kFmaChains];
  for (int i = 0; i < kFmaChains; ++i) x[i] = random(i);
  const float there = 1 + fabsf(random(kFmaChains));
  const float addend = random(kFmaChains + 1);
  const float back = 1 / there;
  const float back_addend = -addend * back;
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int step = 0; step < kFmaSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kFmaChains; ++i)
        x[i] = step % 2 == 0 ? __fmaf_rn(x[i], there, addend) : __fmaf_rn(x[i], back, back_addend);
    }
  }
  float sum = 0;
  for (int i = 0; i < kFmaChains; ++i) sum += x[i];
  if (sum == 0.123456789F) *sink = 1;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace {

// One instruction of a warpgroup on 64 x 256, both operands in shared memory; `add` 0 begins a new sum.
#define KBH_REGISTERS_4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define KBH_REGISTERS_16(i) KBH_REGISTERS_4(i), KBH_REGISTERS_4(i + 4), KBH_REGISTERS_4(i + 8), KBH_REGISTERS_4(i + 12)
#define KBH_REGISTERS_64(i) \
  KBH_REGISTERS_16(i), KBH_REGISTERS_16(i + 16), KBH_REGISTERS_16(i + 32), KBH_REGISTERS_16(i + 48)
#define KBH_128_NAMES                                                                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"                       \
  " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"             \
  " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"             \
  " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63,"             \
  " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79,"             \
  " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,"             \
  " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111," \
  " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"
#define KBH_WGMMA(shape_and_types, scales)                                                                    \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\nwgmma.mma_async.sync.aligned." shape_and_types \
               " " KBH_128_NAMES ", %128, %129, add" scales ";\n}"                                            \
               : KBH_REGISTERS_64(0), KBH_REGISTERS_64(64)                                                    \
               : "l"(a), "l"(b), "r"(add))

template <typename Format>
__device__ void wgmma(unsigned (&d)[128], std::uint64_t a, std::uint64_t b, int add) {
  if constexpr (std::is_same_v<Format, E4m3>) KBH_WGMMA("m64n256k32.f32.e4m3.e4m3", ", 1, 1");
  if constexpr (std::is_same_v<Format, Int8>) KBH_WGMMA("m64n256k32.s32.s8.s8", "");
  if constexpr (std::is_same_v<Format, Bf16>) KBH_WGMMA("m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0");
  if constexpr (std::is_same_v<Format, Fp16>) KBH_WGMMA("m64n256k16.f32.f16.f16", ", 1, 1, 0, 0");
  if constexpr (std::is_same_v<Format, Tf32>) KBH_WGMMA("m64n256k8.f32.tf32.tf32", ", 1, 1");
}

/// Of a tile with 128-byte rows in the 128-byte swizzle, K in a row: 1024 bytes from eight rows to the next eight. PTX
/// ISA, "Matrix Descriptor Format".
__device__ std::uint64_t descriptor(const char* tile) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kEightRows = std::uint64_t{8 * kRowBytes / 16} << 32;
  constexpr std::uint64_t kUnused = std::uint64_t{1} << 16;
  return kSwizzle128 | kEightRows | kUnused | (shared_address(tile) & 0x3ffff) >> 4;
}

template <typename Format>
__device__ void wgmma_loop(int turns, unsigned* sink) {
  extern __shared__ __align__(1024) char tiles[];
  const unsigned warpgroups = blockDim.x / 128;
  const unsigned stage_bytes = (warpgroups * kWgmmaM + kWgmmaN) * kRowBytes;
  for (unsigned i = threadIdx.x; i < kWgmmaStages * stage_bytes / 4; i += blockDim.x)
    reinterpret_cast<unsigned*>(tiles)[i] = Format::word(i);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  const std::uint64_t left = descriptor(tiles + threadIdx.x / 128 * kWgmmaM * kRowBytes);
  const std::uint64_t right = descriptor(tiles + warpgroups * kWgmmaM * kRowBytes);
  unsigned d[128] = {};
  for (int turn = 0; turn < turns; ++turn) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < kWgmmaStages * kWgmmaStepsPerStage; ++i) {
      // Descriptors count in 16 bytes; a step is 32.
      const std::uint64_t at = i / kWgmmaStepsPerStage * (stage_bytes / 16) + i % kWgmmaStepsPerStage * 2;
      wgmma<Format>(d, left + at, right + at, i != 0 || turn % kWgmmaTurnsPerSum != 0);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) {
    asm volatile("" : "+r"(d[i])::"memory");
    sum ^= d[i];
  }
  if (sum == kNever) *sink = sum;
}

}  // namespace

#define KBH_WGMMA_LOOP(name, Format)                                                                 \
  extern "C" __global__ void __launch_bounds__(384, 1) kbh_wgmma_##name(int turns, unsigned* sink) { \
    wgmma_loop<Format>(turns, sink);                                                                 \
  }
KBH_WGMMA_LOOP(fp8_e4m3, E4m3)
KBH_WGMMA_LOOP(int8, Int8)
KBH_WGMMA_LOOP(bf16, Bf16)
KBH_WGMMA_LOOP(fp16, Fp16)
KBH_WGMMA_LOOP(tf32, Tf32)

#endif
