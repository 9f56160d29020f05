// How one element is drawn. Every functor takes the words of its element and gives the same bits on any processor: only
// +, -, *, / and integer operations.
#pragma once

#include <cstdint>

#include <kbh/numbers.hpp>

#include "base/philox.hpp"

namespace kbh::w4a16 {

using philox::Words;

// ---- activations, bf16

struct NormalBf16 {
  float scale;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    return to_bf16(philox::mul(scale, philox::normal(w.v[0])));
  }
};

/// The magnitude of a normal: one sign, so that sums over x grow.
struct PositiveBf16 {
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    return static_cast<std::uint16_t>(to_bf16(philox::normal(w.v[0])) & 0x7fffu);
  }
};

/// Normal about 1/4: a sum over many does not cancel.
struct LeaningBf16 {
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    return to_bf16(philox::add(philox::normal(w.v[0]), 0.25f));
  }
};

/// Normal with one amplitude for the first elements and another for the rest.
struct PrefixBf16 {
  std::uint64_t length;
  float first;
  float rest;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    return NormalBf16{i < length ? first : rest}(w, i);
  }
};

/// Normal with an amplitude for each row of `width` elements.
struct RowsBf16 {
  const float* amplitude;
  std::uint64_t width;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    return NormalBf16{amplitude[i / width]}(w, i);
  }
};

/// Normal, but the last `tail` elements of each row are `factor` times as large.
struct TailBf16 {
  std::uint64_t width;
  std::uint64_t tail;
  float factor;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    return NormalBf16{i % width >= width - tail ? factor : 1.0f}(w, i);
  }
};

/// Normal in one group of 128 of each row, never the first; 0 elsewhere. At least two groups.
struct OneGroupBf16 {
  std::uint64_t width;
  std::uint64_t places;  // the stream that says where
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    const auto later = static_cast<std::uint32_t>(width / 128 - 1);
    const std::uint32_t live = 1 + philox::below(philox::words(places, i / width).v[0], later);
    return i % width / 128 == live ? NormalBf16{1}(w, i) : std::uint16_t{0};
  }
};

KBH_HOST_DEVICE std::uint16_t signed_bf16(float magnitude, std::uint32_t word) {
  return static_cast<std::uint16_t>(to_bf16(magnitude) | (word & 0x8000u));
}

/// Normal, but the last element of each row is +-magnitude.
struct LastBf16 {
  std::uint64_t width;
  float magnitude;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    return i % width == width - 1 ? signed_bf16(magnitude, w.v[1]) : NormalBf16{1}(w, i);
  }
};

/// -1, 0, 0, 1 with equal chances; the last of each row is never 0.
struct TernaryBf16 {
  std::uint64_t width;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    const bool zero = (w.v[0] & 1u) != 0 && i % width != width - 1;
    return zero ? std::uint16_t{0} : signed_bf16(1, w.v[1]);
  }
};

/// Integers from -7 to 7.
struct SmallIntegerBf16 {
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    return to_bf16(philox::sub(philox::to_float(philox::below(w.v[0], 15)), 7));
  }
};

// ---- levels, 32 at a time: 16 bytes of one row of w_q

struct UniformLevels {
  KBH_HOST_DEVICE Words operator()(Words w, std::uint64_t) const { return w; }
};

/// 0 or 15.
struct ExtremeLevels {
  KBH_HOST_DEVICE Words operator()(Words w, std::uint64_t) const {
    for (std::uint32_t& word : w.v) word = (word & 0x11111111u) * 15;
    return w;
  }
};

struct HighestLevels {
  KBH_HOST_DEVICE Words operator()(Words, std::uint64_t) const { return {{~0u, ~0u, ~0u, ~0u}}; }
};

/// The zero point, one less or one more. Zero points lie in 1..14.
struct LevelsNearZero {
  const std::uint16_t* zeros;  // bf16 (K/128, N)
  std::uint64_t columns;
  KBH_HOST_DEVICE Words operator()(Words w, std::uint64_t i) const {
    const std::uint64_t units = columns / 16;
    const std::uint16_t* zero = zeros + i / units / 64 * columns + i % units * 16;  // 64 rows of w_q to a group
    for (int word = 0; word < 4; ++word) {
      std::uint32_t levels = 0;
      for (int nibble = 0; nibble < 8; ++nibble) {
        const auto z = static_cast<std::uint32_t>(from_bf16(zero[word * 4 + nibble / 2]));
        levels |= (z - 1 + (w.v[word] >> (4 * nibble) & 15u) % 3) << (4 * nibble);
      }
      w.v[word] = levels;
    }
    return w;
  }
};

// ---- scales and zero points, bf16

struct LogUniformBf16 {
  float low;
  float high;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    return to_bf16(philox::log_uniform(w.v[0], low, high));
  }
};

struct OneOrTwoBf16 {
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const { return to_bf16((w.v[0] & 1u) ? 2 : 1); }
};

/// Large for one group of each column, tiny for all others.
struct LiveGroupBf16 {
  enum class Place : std::uint8_t { first, last, anywhere };
  Place place;
  std::uint64_t places;  // the stream that says where
  std::uint64_t columns;
  std::uint32_t groups;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    std::uint32_t live = place == Place::last ? groups - 1 : 0;
    if (place == Place::anywhere) live = philox::below(philox::words(places, i % columns).v[0], groups);
    return i / columns == live ? LogUniformBf16{11, 12}(w, i) : LogUniformBf16{-12, -11}(w, i);
  }
};

/// Integers from `low` to `low + count - 1`.
struct ZeroPointBf16 {
  std::uint32_t low;
  std::uint32_t count;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    return to_bf16(philox::to_float(low + philox::below(w.v[0], count)));
  }
};

struct ExtremeZeroBf16 {
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const { return to_bf16((w.v[0] & 1u) ? 15 : 0); }
};

// ---- the public quantiser: round to nearest of normal weights, asymmetric, group by group
//
// Weight (k, j) is weight_of word k % 4 of element k / 4 * N + j.

KBH_HOST_DEVICE float weight_of(std::uint32_t word) { return philox::mul(philox::normal(word), 0.02f); }

KBH_HOST_DEVICE float nearest_integer(float value) {
  constexpr float kTies = 0x1.8p23f;  // from here on floats are integers, so adding it rounds, ties to even
  return philox::sub(philox::add(value, kTies), kTies);
}

KBH_HOST_DEVICE float within_levels(float value) { return value < 0 ? 0 : value > 15 ? 15 : value; }

KBH_HOST_DEVICE float scale_of(float low, float high) {
  const float range = philox::sub(high, low);
  return philox::div(range < 1e-8f ? 1e-8f : range, 15);
}

KBH_HOST_DEVICE float zero_of(float low, float scale) {
  return within_levels(nearest_integer(philox::div(philox::sub(0, low), scale)));
}

KBH_HOST_DEVICE std::uint32_t level_of(float weight, float scale, float zero) {
  return static_cast<std::uint32_t>(
      static_cast<std::int32_t>(within_levels(nearest_integer(philox::add(philox::div(weight, scale), zero)))));
}

}  // namespace kbh::w4a16
