// The loops of simd_kernels.hpp, once per instruction set: included by simd_kernels.cpp inside a namespace that defines
// kVectorBytes and stream(). Vectors are the compiler's own, so that the same lines serve every architecture.

using Words = std::uint64_t __attribute__((vector_size(kVectorBytes), may_alias));
using Floats = float __attribute__((vector_size(kVectorBytes)));
using Doubles = double __attribute__((vector_size(kVectorBytes)));

constexpr std::size_t kStep = 256;  // bytes of one stream per turn: four lines
constexpr std::size_t kVectorsPerStep = kStep / kVectorBytes;

KBH_INLINE Words load(const std::byte* from) { return *reinterpret_cast<const Words*>(from); }
KBH_INLINE void store(std::byte* to, Words words) { *reinterpret_cast<Words*>(to) = words; }

KBH_INLINE std::uint64_t fold(Words words) {
  std::uint64_t folded = 0;
  for (std::size_t lane = 0; lane < kVectorBytes / 8; ++lane) folded ^= words[lane];
  return folded;
}

KBH_KERNEL std::uint64_t read(const std::byte* data, std::size_t bytes) {
  Words a = {}, b = {}, c = {}, d = {};
  for (std::size_t offset = 0; offset < bytes; offset += 4 * kVectorBytes) {
    a ^= load(data + offset);
    b ^= load(data + offset + kVectorBytes);
    c ^= load(data + offset + 2 * kVectorBytes);
    d ^= load(data + offset + 3 * kVectorBytes);
  }
  return fold((a ^ b) ^ (c ^ d));
}

// Cold 8 MiB of 4 KiB pages, two cores of an EPYC (Zen 4), faster quartile of 40: one plain stream 28.4 GB/s,
// four 30.0, eight 31.5, eight adjacent pages at once 23.3; four streams with a prefetch into the second level 1 KiB
// ahead 31.9 (4 MiB: 29.1, 32.0, 30.8, 25.6 and 33.9). 256 to 2048 bytes ahead are within noise of that; prefetching
// into the first level costs a tenth.
KBH_KERNEL std::uint64_t read_streams(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kStreams = 4;
  constexpr std::size_t kAhead = 1024;
  const std::size_t part = bytes / kStreams;
  Words a = {}, b = {}, c = {}, d = {};
  for (std::size_t offset = 0; offset < part; offset += kStep) {
    for (std::size_t stream_index = 0; stream_index < kStreams; ++stream_index) {
      const std::byte* at = data + stream_index * part + offset;
      for (std::size_t line = 0; line < kStep; line += 64) __builtin_prefetch(at + kAhead + line, 0, 2);
      for (std::size_t i = 0; i < kVectorsPerStep; i += 4) {
        a ^= load(at + i * kVectorBytes);
        b ^= load(at + (i + 1) * kVectorBytes);
        c ^= load(at + (i + 2) * kVectorBytes);
        d ^= load(at + (i + 3) * kVectorBytes);
      }
    }
  }
  return fold((a ^ b) ^ (c ^ d));
}

KBH_KERNEL void write(std::byte* data, std::size_t bytes, std::uint64_t value) {
  const Words words = Words{} + value;
  for (std::size_t offset = 0; offset < bytes; offset += kStep)
    for (std::size_t i = 0; i < kStep; i += kVectorBytes) store(data + offset + i, words);
}

KBH_KERNEL void write_streaming(std::byte* data, std::size_t bytes, std::uint64_t value) {
  const Words words = Words{} + value;
  for (std::size_t offset = 0; offset < bytes; offset += kStep)
    for (std::size_t i = 0; i < kStep; i += kVectorBytes) stream(data + offset + i, words);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the stores have left the processor
}

KBH_KERNEL void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t offset = 0; offset < bytes; offset += kStep)
    for (std::size_t i = 0; i < kStep; i += kVectorBytes) store(to + offset + i, load(from + offset + i));
}

KBH_KERNEL void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t offset = 0; offset < bytes; offset += kStep)
    for (std::size_t i = 0; i < kStep; i += kVectorBytes) stream(to + offset + i, load(from + offset + i));
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Twelve independent chains: latency 4 times two pipes needs eight, and twelve with both factors fit 16 registers.
constexpr std::int64_t kChains = 12;

#define KBH_FMA_CHAINS(name, Vector, scalar)                                                       \
  KBH_KERNEL double name(std::int64_t rounds, double start) {                                      \
    const Vector factor = Vector{} + scalar(0.999);                                                \
    const Vector term = Vector{} + scalar(0.001);                                                  \
    const Vector one = Vector{} + scalar(start);                                                   \
    Vector c0 = one, c1 = c0 + one, c2 = c1 + one, c3 = c2 + one, c4 = c3 + one, c5 = c4 + one;    \
    Vector c6 = c5 + one, c7 = c6 + one, c8 = c7 + one, c9 = c8 + one, c10 = c9 + one;             \
    Vector c11 = c10 + one;                                                                        \
    for (std::int64_t round = 0; round < rounds; ++round) {                                        \
      c0 = c0 * factor + term, c1 = c1 * factor + term, c2 = c2 * factor + term;                   \
      c3 = c3 * factor + term, c4 = c4 * factor + term, c5 = c5 * factor + term;                   \
      c6 = c6 * factor + term, c7 = c7 * factor + term, c8 = c8 * factor + term;                   \
      c9 = c9 * factor + term, c10 = c10 * factor + term, c11 = c11 * factor + term;               \
    }                                                                                              \
    const Vector sum = (c0 + c1 + c2 + c3) + (c4 + c5 + c6 + c7) + (c8 + c9 + c10 + c11);          \
    double total = 0;                                                                              \
    for (std::size_t lane = 0; lane < sizeof(Vector) / sizeof(scalar); ++lane) total += sum[lane]; \
    return total;                                                                                  \
  }

KBH_FMA_CHAINS(fma_fp32, Floats, float)
KBH_FMA_CHAINS(fma_fp64, Doubles, double)
#undef KBH_FMA_CHAINS

constexpr SimdKernels kernels(std::string_view isa) {
  return {isa,
          read,
          read_streams,
          write,
          write_streaming,
          copy,
          copy_streaming,
          fma_fp32,
          fma_fp64,
          2 * kChains * static_cast<std::int64_t>(kVectorBytes / sizeof(float)),
          2 * kChains * static_cast<std::int64_t>(kVectorBytes / sizeof(double))};
}
