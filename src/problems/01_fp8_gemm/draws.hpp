// How one element of a tensor is drawn from its words: the same bits on a CPU and in device code.
#pragma once

#include <cstdint>

#include <kbh/numbers.hpp>

#include "base/philox.hpp"

namespace kbh::fp8_gemm {

/// The nearest finite e4m3: what is too large becomes 448. Scaled data may reach that, nominal data do not.
KBH_HOST_DEVICE std::uint8_t finite_e4m3(float value) {
  const float most = 448;
  return to_e4m3(value > most ? most : value < -most ? -most : value);
}

// ---- amplitudes: a factor for each element

struct Everywhere {
  float factor;
  KBH_HOST_DEVICE float operator()(std::uint64_t) const { return factor; }
};

/// factors[row], for rows of `width` elements.
struct ByRow {
  const float* factors;
  std::uint64_t width;
  KBH_HOST_DEVICE float operator()(std::uint64_t i) const { return factors[i / width]; }
};

/// The columns from `begin` on are larger, for rows of `width` elements.
struct ColumnsFrom {
  std::uint64_t begin;
  std::uint64_t width;
  float factor;
  KBH_HOST_DEVICE float operator()(std::uint64_t i) const { return i % width >= begin ? factor : 1.0f; }
};

/// The first `length` elements have another amplitude than the rest.
struct Prefix {
  std::uint64_t length;
  float first;
  float rest;
  KBH_HOST_DEVICE float operator()(std::uint64_t i) const { return i < length ? first : rest; }
};

// ---- nominal data

/// Upstream's x, uniform in [-4, 4), then e4m3; its stress cases scale that and round to e4m3 again.
template <typename Amplitude>
struct UniformX {
  Amplitude amplitude;
  KBH_HOST_DEVICE std::uint8_t operator()(philox::Words w, std::uint64_t i) const {
    const float value = philox::sub(philox::mul(philox::uniform(w.v[0]), 8.0f), 4.0f);
    return finite_e4m3(philox::mul(from_e4m3(to_e4m3(value)), amplitude(i)));
  }
};

/// Upstream's unquantised weight, bf16 of a normal number with deviation 0.02, from philox::normal.
KBH_HOST_DEVICE float unquantised_weight(float normal) { return from_bf16(to_bf16(philox::mul(normal, 0.02f))); }

/// Upstream's scale of a row whose largest magnitude is `largest`: that becomes 448, the largest e4m3.
KBH_HOST_DEVICE float scale_of_row(float largest) {
  const float scale = philox::div(largest, 448.0f);
  return scale < 1e-12f ? 1e-12f : scale;
}

KBH_HOST_DEVICE std::uint8_t quantised(float weight, float scale) { return to_e4m3(philox::div(weight, scale)); }

// ---- exact data (fills.cpp says why they are exact)

/// Places that must not be zero: the last column of K, which tails lose, and one row or more in every other column.
struct Decisive {
  std::uint64_t rows;
  std::uint64_t k;
  KBH_HOST_DEVICE bool operator()(std::uint64_t i) const {
    const std::uint64_t column = i % k;
    return column == k - 1 || column % rows == i / k;
  }
};

/// -1, 0 or +1 times the power of two of the row. Zeros have both signs.
struct Ternary {
  Decisive decisive;
  const float* powers;
  KBH_HOST_DEVICE std::uint8_t operator()(philox::Words w, std::uint64_t i) const {
    const auto sign = static_cast<std::uint8_t>((w.v[1] & 1u) << 7);
    if (philox::below(w.v[0], 3) == 0 && !decisive(i)) return sign;
    return static_cast<std::uint8_t>(to_e4m3(powers[i / decisive.k]) | sign);
  }
};

/// `unit` times a whole number of -most .. most; all but one of `one_in` are zero (-1 or 1 where they must not be).
struct Integers {
  Decisive decisive;
  std::uint32_t most;
  float unit;
  std::uint32_t one_in;
  KBH_HOST_DEVICE std::uint8_t operator()(philox::Words w, std::uint64_t i) const {
    std::int32_t number = 0;
    if (philox::below(w.v[1], one_in) == 0)
      number = static_cast<std::int32_t>(philox::below(w.v[0], 2 * most + 1)) - static_cast<std::int32_t>(most);
    if (number == 0 && decisive(i)) number = (w.v[2] & 1u) == 0 ? 1 : -1;
    return to_e4m3(philox::mul(static_cast<float>(number), unit));
  }
};

/// -448, 0, +448; two thirds are zero, but none in the last of `k` columns.
struct Saturated {
  std::uint64_t k;
  KBH_HOST_DEVICE std::uint8_t operator()(philox::Words w, std::uint64_t i) const {
    if (philox::below(w.v[0], 3) != 0 && i % k != k - 1) return 0;
    return static_cast<std::uint8_t>(0x7eu | (w.v[1] & 1u) << 7);
  }
};

// ---- others

/// Every finite bit pattern is as likely as any other: subnormals, both zeros, +-448.
struct AnyCode {
  KBH_HOST_DEVICE std::uint8_t operator()(philox::Words w, std::uint64_t) const {
    return static_cast<std::uint8_t>(philox::below(w.v[0], 127) | (w.v[1] & 1u) << 7);
  }
};

}  // namespace kbh::fp8_gemm
