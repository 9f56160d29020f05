// Random numbers whose bits are the same everywhere: CPU or GPU, any vector width, any number of threads.
//
// The generator is Philox4x32-10 (Salmon et al., 2011; the Random123 package): a 64-bit key, the *stream*, and a
// counter, the *element's index*, give four random words. There is no state, so any element can be drawn alone.
//
// The functions that turn a word into a number use +, -, *, / and square root (all correctly rounded by IEEE 754) and
// integer operations, nothing else: no fused multiply-add and no math library, whose results differ between machines.
// Host code is compiled with -ffp-contract=off for that reason; on a device the __f*_rn intrinsics forbid fusing.
#pragma once

#include <Random123/philox.h>

#include <cstdint>
#ifndef __CUDA_ARCH__
#include <bit>
#include <cmath>
#endif

#ifdef __CUDACC__
#define KBH_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define KBH_HOST_DEVICE [[gnu::always_inline]] inline
#endif

namespace kbh::philox {

// ---- arithmetic that no compiler may fuse
// -----------------------------------------------------------------------------

#ifdef __CUDA_ARCH__
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float sub(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float div(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ float root(float a) { return __fsqrt_rn(a); }
__device__ __forceinline__ float from_bits(std::uint32_t bits) { return __uint_as_float(bits); }
__device__ __forceinline__ std::uint32_t to_bits(float value) { return __float_as_uint(value); }
#else
KBH_HOST_DEVICE float add(float a, float b) { return a + b; }
KBH_HOST_DEVICE float sub(float a, float b) { return a - b; }
KBH_HOST_DEVICE float mul(float a, float b) { return a * b; }
KBH_HOST_DEVICE float div(float a, float b) { return a / b; }
KBH_HOST_DEVICE float root(float a) { return std::sqrt(a); }
KBH_HOST_DEVICE float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
KBH_HOST_DEVICE std::uint32_t to_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
#endif

/// `number` must be below 2^31: the signed conversion is one instruction everywhere, the unsigned one is not.
KBH_HOST_DEVICE float to_float(std::uint32_t number) { return static_cast<float>(static_cast<std::int32_t>(number)); }

// ---- the generator
// ----------------------------------------------------------------------------------------------------

struct Words {
  std::uint32_t v[4];
};

/// The four words of one element.
KBH_HOST_DEVICE Words words(std::uint64_t stream, std::uint32_t counter_low, std::uint32_t counter_high) {
  const philox4x32_ctr_t counter = {{counter_low, counter_high, 0, 0}};
  const philox4x32_key_t key = {{static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}};
  const philox4x32_ctr_t drawn = philox4x32(counter, key);
  return {{drawn.v[0], drawn.v[1], drawn.v[2], drawn.v[3]}};
}

KBH_HOST_DEVICE Words words(std::uint64_t stream, std::uint64_t element) {
  return words(stream, static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32));
}

// ---- numbers from one word
// --------------------------------------------------------------------------------------------

/// [0, 1): multiples of 2^-24.
KBH_HOST_DEVICE float uniform(std::uint32_t word) { return mul(to_float(word >> 8), 0x1p-24f); }

/// (0, 1): odd multiples of 2^-24.
KBH_HOST_DEVICE float uniform_open(std::uint32_t word) { return mul(to_float((word >> 8) | 1u), 0x1p-24f); }

/// 0 .. n-1. The bias is below n / 2^32.
KBH_HOST_DEVICE std::uint32_t below(std::uint32_t word, std::uint32_t n) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * n) >> 32);
}

/// Natural logarithm of a positive normal number; absolute error below 1.5e-7 * max(1, |result|).
KBH_HOST_DEVICE float log(float y) {
  // y = m * 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh((m - 1) / (m + 1)), whose series ends early: |s| <
  // 0.172.
  const std::uint32_t shifted = to_bits(y) - 0x3f3504f3u;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float m = from_bits((shifted & 0x007fffffu) + 0x3f3504f3u);
  const float s = div(sub(m, 1.0f), add(m, 1.0f));
  const float z = mul(s, s);
  float series = 1.0f / 9;
  series = add(mul(series, z), 1.0f / 7);
  series = add(mul(series, z), 1.0f / 5);
  series = add(mul(series, z), 1.0f / 3);
  series = add(mul(series, z), 1.0f);
  return add(mul(exponent, 0.693147181f), mul(mul(2.0f, s), series));
}

/// 2^t for -126 <= t < 127; relative error below 1e-6.
KBH_HOST_DEVICE float exp2(float t) {
  const auto whole = static_cast<std::int32_t>(add(t, 126.0f));                           // truncation is floor here
  const float g = mul(sub(sub(t, static_cast<float>(whole - 126)), 0.5f), 0.693147181f);  // e^g, |g| < 0.347
  float series = 1.0f / 720;
  series = add(mul(series, g), 1.0f / 120);
  series = add(mul(series, g), 1.0f / 24);
  series = add(mul(series, g), 1.0f / 6);
  series = add(mul(series, g), 0.5f);
  series = add(mul(series, g), 1.0f);
  series = add(mul(series, g), 1.0f);
  const float power = from_bits(static_cast<std::uint32_t>(whole + 1) << 23);  // 2^(whole - 126)
  return mul(mul(1.41421356f, series), power);
}

/// A scale between 2^low and 2^high, uniform in its logarithm.
KBH_HOST_DEVICE float log_uniform(std::uint32_t word, float low, float high) {
  return exp2(add(low, mul(sub(high, low), uniform(word))));
}

/// Standard normal, |z| <= 6.23: the quantile of a 31-bit uniform. sqrt(2) * erfinv(x) with the two single-precision
/// polynomials of M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2010). Relative distance to the
/// true quantile: below 5e-7 up to |z| = 5.5, beyond that (4 elements in 1e8) 2.3e-4.
KBH_HOST_DEVICE float normal(std::uint32_t word) {
  // Bit 0 is the sign; the others give |x| and 1 - |x|, each rounded once, so that neither the centre nor a tail is
  // coarse.
  const std::uint32_t odd = (word >> 1) | 1u;  // odd and below 2^31, so |x| is neither 0 nor 1
  const float tail = mul(to_float(odd), 0x1p-31f);
  const float x = mul(to_float(0x80000000u - odd), 0x1p-31f);
  const float w = sub(0.0f, log(mul(tail, add(1.0f, x))));

  const float c = sub(w, 2.5f);
  float centre = 2.81022636e-08f;
  centre = add(mul(centre, c), 3.43273939e-07f);
  centre = add(mul(centre, c), -3.5233877e-06f);
  centre = add(mul(centre, c), -4.39150654e-06f);
  centre = add(mul(centre, c), 0.00021858087f);
  centre = add(mul(centre, c), -0.00125372503f);
  centre = add(mul(centre, c), -0.00417768164f);
  centre = add(mul(centre, c), 0.246640727f);
  centre = add(mul(centre, c), 1.50140941f);

  const float t = sub(root(w), 3.0f);
  float far = -0.000200214257f;
  far = add(mul(far, t), 0.000100950558f);
  far = add(mul(far, t), 0.00134934322f);
  far = add(mul(far, t), -0.00367342844f);
  far = add(mul(far, t), 0.00573950773f);
  far = add(mul(far, t), -0.0076224613f);
  far = add(mul(far, t), 0.00943887047f);
  far = add(mul(far, t), 1.00167406f);
  far = add(mul(far, t), 2.83297682f);

  const float z = mul(mul(1.41421356f, x), w < 5.0f ? centre : far);
  return from_bits(to_bits(z) ^ (word << 31));
}

}  // namespace kbh::philox
