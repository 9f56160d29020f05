#include "device/cpu/simd_kernels.hpp"

#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A ceiling is the same in every build of kbh, so these loops are optimised and free of instrumentation in all of them.
// Contraction is off elsewhere (the data of problems must not depend on it); here the fused operation is the point.
#if defined(__clang__)
#define KBH_KERNEL __attribute__((no_sanitize("address", "undefined", "thread")))
#pragma clang fp contract(fast)
#else
#define KBH_KERNEL __attribute__((no_sanitize("address", "undefined", "thread")))
#pragma GCC optimize("O3", "unroll-loops", "fp-contract=fast")
#endif
#define KBH_INLINE KBH_KERNEL __attribute__((always_inline)) inline

namespace kbh::cpu {

namespace baseline {
constexpr std::size_t kVectorBytes = 16;
#if defined(__x86_64__)
template <typename Vector>
KBH_INLINE void stream(std::byte* to, Vector words) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(words));
}
#else
template <typename Vector>
KBH_INLINE void stream(std::byte* to, Vector words) {
  *reinterpret_cast<Vector*>(to) = words;
}
#endif
#include "device/cpu/simd_kernels.inl"
}  // namespace baseline

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr std::size_t kVectorBytes = 32;
using StreamWords = std::uint64_t __attribute__((vector_size(32), may_alias));
KBH_INLINE void stream(std::byte* to, StreamWords words) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(words));
}
#include "device/cpu/simd_kernels.inl"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr std::size_t kVectorBytes = 64;
using StreamWords = std::uint64_t __attribute__((vector_size(64), may_alias));
KBH_INLINE void stream(std::byte* to, StreamWords words) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(words));
}
#include "device/cpu/simd_kernels.inl"
}  // namespace avx512
#pragma GCC pop_options

// Every bf16 product of a matrix multiplication can go through this instruction, at twice the rate of fp32's.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bf16")
namespace avx512_bf16 {
constexpr int kChains = 12;
constexpr std::int64_t kFlopsPerRound = kChains * 16 * 4;  // 16 lanes, two products and two sums in each

KBH_KERNEL double dot(std::int64_t rounds, double start) {
  __m512 sums[kChains];
  int chain = 0;
  for (__m512& sum : sums) sum = _mm512_set1_ps(static_cast<float>(++chain * start));
  const auto small = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x2f802f80));  // pairs of 2^-32
  const auto one = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  for (std::int64_t round = 0; round < rounds; ++round)
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, small, one);
  double total = 0;  // lane by lane: g++ 12 warns about its own header's reductions
  for (const __m512 sum : sums) {
    float lanes[16];
    _mm512_storeu_ps(lanes, sum);
    for (const float lane : lanes) total += static_cast<double>(lane);
  }
  return total;
}
}  // namespace avx512_bf16
#pragma GCC pop_options
#endif

const std::vector<SimdKernels>& simd_kernels() {
  static const std::vector<SimdKernels> supported = [] {
    std::vector<SimdKernels> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
      found.push_back(avx512::kernels("avx512f"));
      if (__builtin_cpu_supports("avx512bf16")) {
        found.back().dot_bf16 = avx512_bf16::dot;
        found.back().bf16_flops_per_round = avx512_bf16::kFlopsPerRound;
      }
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(avx2::kernels("avx2+fma"));
#endif
    found.push_back(baseline::kernels("baseline"));
    return found;
  }();
  return supported;
}

}  // namespace kbh::cpu
