// Number formats that C++20 lacks: bf16, fp16 and fp8 e4m3 (OCP "e4m3fn": no infinities, 448 is the largest number), as
// bit patterns in unsigned integers. Conversions to the narrow formats round to nearest, ties to even.
//
// For submissions, references and the grader alike, on the CPU and in device code.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define KBH_NUMBERS_FUNCTION __host__ __device__ __forceinline__
#else
#define KBH_NUMBERS_FUNCTION [[gnu::always_inline]] inline
#endif

namespace kbh {

KBH_NUMBERS_FUNCTION std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

KBH_NUMBERS_FUNCTION float float_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// ---- bf16: the upper half of a float

KBH_NUMBERS_FUNCTION float from_bf16(std::uint16_t bits) {
  return float_of_bits(static_cast<std::uint32_t>(bits) << 16);
}

/// NaN stays NaN (quiet); what is too large becomes infinity.
KBH_NUMBERS_FUNCTION std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// ---- fp16

KBH_NUMBERS_FUNCTION float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // 2^112 moves the exponent; the product is exact, subnormals included.
  return float_of_bits(sign | bits_of(float_of_bits(magnitude << 13) * 0x1p112f));
}

/// NaN stays NaN; 65520 and above become infinity.
KBH_NUMBERS_FUNCTION std::uint16_t to_f16(float value) {
  const std::uint32_t bits = bits_of(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: adding 1/2 lines the last bit up with fp16's 2^-24
    const float sum = float_of_bits(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (bits_of(sum) - 0x3f000000u));
  }
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}

// ---- fp8 e4m3

KBH_NUMBERS_FUNCTION float from_e4m3(std::uint8_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80u) << 24;
  const std::uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu) return float_of_bits(sign | 0x7fc00000u);
  return float_of_bits(sign | bits_of(float_of_bits(magnitude << 20) * 0x1p120f));
}

/// As PyTorch converts: NaN and what rounds to more than 448 become NaN.
KBH_NUMBERS_FUNCTION std::uint8_t to_e4m3(float value) {
  const std::uint32_t bits = bits_of(value);
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x43e80000u) return static_cast<std::uint8_t>(sign | 0x7fu);  // 464, half way to 480, rounds to 448
  if (magnitude < 0x3c800000u) {  // below 2^-6: adding 2^14 lines the last bit up with e4m3's 2^-9
    const float sum = float_of_bits(magnitude) + 16384.0f;
    return static_cast<std::uint8_t>(sign | (bits_of(sum) - 0x46800000u));
  }
  return static_cast<std::uint8_t>(sign | ((magnitude - 0x3c000000u + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20));
}

}  // namespace kbh

#undef KBH_NUMBERS_FUNCTION
