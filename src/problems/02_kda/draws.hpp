// What one element of a KDA input is, in every case: functors of the element's random words and its index, for any
// processor (they are compiled for GPUs too, with the same bits). Sums and products as in base/philox.hpp.
#pragma once

#include <cstdint>

#include <kbh/numbers.hpp>

#include "base/philox.hpp"

namespace kbh::kda {

using philox::Words;

/// Of a (B, T, H, width) tensor.
struct Place {
  std::uint64_t batch;
  std::uint64_t token;
  std::uint64_t head;
  std::uint64_t channel;
};

struct Grid {
  std::uint64_t tokens;
  std::uint64_t heads;
  std::uint64_t width;

  [[nodiscard]] KBH_HOST_DEVICE Place at(std::uint64_t i) const {
    const std::uint64_t row = i / width;
    return {row / heads / tokens, row / heads % tokens, row % heads, i % width};
  }
  [[nodiscard]] KBH_HOST_DEVICE std::uint64_t chain(std::uint64_t i) const {
    const std::uint64_t row = i / width;
    return row / heads / tokens * heads + row % heads;
  }
};

inline constexpr std::uint64_t kChunkTokens = 64;
inline constexpr float kLog2E = 1.44269504f;
/// The domain's largest gate: one element in 3e7 of a nominal draw would lie beyond.
inline constexpr float kLargestGate = 0.5f;

KBH_HOST_DEVICE float scaled_normal(const Words& w, float scale) { return philox::mul(scale, philox::normal(w.v[0])); }

KBH_HOST_DEVICE float between(std::uint32_t word, float low, float high) {
  return philox::add(low, philox::mul(philox::sub(high, low), philox::uniform(word)));
}

/// +1 or -1, by the lowest bit of what is counted.
KBH_HOST_DEVICE float parity_sign(std::uint64_t count) { return count % 2 == 0 ? 1.0f : -1.0f; }

// ---- plain distributions

struct NormalBf16 {
  float scale;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const { return to_bf16(scaled_normal(w, scale)); }
};

/// Upstream's stress cases: a normal element in bf16, times a factor, in bf16 again.
struct RescaledNormalBf16 {
  float scale;
  float factor;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    return to_bf16(philox::mul(from_bf16(to_bf16(scaled_normal(w, scale))), factor));
  }
};

struct UniformBf16 {
  float low;
  float high;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const { return to_bf16(between(w.v[0], low, high)); }
};

struct UniformF32 {
  float low;
  float high;
  KBH_HOST_DEVICE float operator()(Words w, std::uint64_t) const { return between(w.v[0], low, high); }
};

struct ConstantF32 {
  float value;
  KBH_HOST_DEVICE float operator()(Words, std::uint64_t) const { return value; }
};

struct ConstantBf16 {
  float value;
  KBH_HOST_DEVICE std::uint16_t operator()(Words, std::uint64_t) const { return to_bf16(value); }
};

/// Logarithm of a gate: mean + deviation * normal.
struct NormalGate {
  float mean;
  float deviation;
  KBH_HOST_DEVICE float operator()(Words w, std::uint64_t) const {
    const float g = philox::add(scaled_normal(w, deviation), mean);
    return g < kLargestGate ? g : kLargestGate;
  }
};

/// Sigmoid of a normal bf16 number.
struct SigmoidBf16 {
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    const float x = from_bf16(to_bf16(philox::normal(w.v[0])));
    return to_bf16(philox::div(1.0f, philox::add(1.0f, philox::exp2(philox::mul(-kLog2E, x)))));
  }
};

// ---- structure of one case each

/// A chunk writes on one channel of the lower half of the key; the upper half is noise.
struct LongMemoryKey {
  Grid grid;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    const Place at = grid.at(i);
    const std::uint64_t half = grid.width / 2;
    if (at.channel >= half) return to_bf16(scaled_normal(w, 0.1f));
    if (at.channel != at.token / kChunkTokens % half) return 0;
    return to_bf16(philox::mul(0.125f, parity_sign(w.v[0] >> 31)));
  }
};

/// Even channels hardly fade, odd ones at once.
struct MixedGate {
  KBH_HOST_DEVICE float operator()(Words w, std::uint64_t i) const {
    return philox::mul(i % 2 == 0 ? -0.002f : -8.0f, philox::uniform(w.v[0]));
  }
};

/// Half of the betas next to 0, half 1 or the number below.
struct BetaAtEnds {
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t) const {
    if (w.v[1] % 2 == 0) return to_bf16(philox::mul(0x1p-12f, philox::uniform_open(w.v[0])));
    return to_bf16(w.v[0] % 2 == 0 ? 1.0f : 1.0f - 0x1p-8f);
  }
};

/// A vector of random signs that all keys of a chunk share, and a normal one of each key's own: any two have a cosine
/// of about K * shared^2. (A normal shared vector would have a norm of its own in every chunk, and a cosine beyond what
/// the domain says in some.)
struct CorrelatedKey {
  Grid grid;
  float shared;
  float own;
  std::uint64_t shared_stream;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    const Place at = grid.at(i);
    const std::uint64_t chunk = grid.chain(i) * (grid.tokens / kChunkTokens) + at.token / kChunkTokens;
    const Words common = philox::words(shared_stream, chunk * grid.width + at.channel);
    return to_bf16(philox::add(philox::mul(shared, parity_sign(common.v[0] >> 31)), scaled_normal(w, own)));
  }
};

/// Chunk 0 writes through the lower half of the channels, the others use the upper half.
struct FadeKey {
  Grid grid;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    const Place at = grid.at(i);
    const bool first = at.token < kChunkTokens;
    const bool lower = at.channel < grid.width / 2;
    return first == lower ? to_bf16(scaled_normal(w, 0.1f)) : std::uint16_t{0};
  }
};

/// Values up to a token, none from there on.
struct EndingValue {
  Grid grid;
  std::uint64_t end;
  RescaledNormalBf16 before;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    return grid.at(i).token < end ? before(w, i) : std::uint16_t{0};
  }
};

/// No queries before a token.
struct LateQuery {
  Grid grid;
  std::uint64_t begin;
  RescaledNormalBf16 after;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    return grid.at(i).token < begin ? std::uint16_t{0} : after(w, i);
  }
};

/// Upstream's property case: one magnitude; the sign is that of the chunk's parity times that of the channel's.
struct PropertyKey {
  Grid grid;
  float magnitude;
  KBH_HOST_DEVICE std::uint16_t operator()(Words, std::uint64_t i) const {
    const Place at = grid.at(i);
    const float first_is_small = at.token == 0 ? 0.05f : 1.0f;
    const float sign = parity_sign(at.token / kChunkTokens + at.channel);
    return to_bf16(philox::mul(from_bf16(to_bf16(philox::mul(magnitude, sign))), first_is_small));
  }
};

// ---- amplitude that differs from place to place: scale * normal * factor(i)

template <typename Factor>
struct FactoredNormalBf16 {
  float scale;
  Factor factor;
  KBH_HOST_DEVICE std::uint16_t operator()(Words w, std::uint64_t i) const {
    return to_bf16(philox::mul(scaled_normal(w, scale), factor(i)));
  }
};

/// 2^-6 .. 2^-2 or 2^2 .. 2^6, in turn from one number to the next; which of them begins is random.
KBH_HOST_DEVICE float alternating_amplitude(std::uint64_t stream, std::uint64_t number) {
  const Words own = philox::words(stream, number + 1);
  const Words all = philox::words(stream, std::uint64_t{0});
  const float exponent = between(own.v[0], 2.0f, 6.0f);
  return philox::exp2(philox::mul(exponent, parity_sign(number + (all.v[0] >> 31))));
}

struct ByBlock {
  Grid grid;
  std::uint64_t tokens;  // of one block
  std::uint64_t stream;
  KBH_HOST_DEVICE float operator()(std::uint64_t i) const {
    return alternating_amplitude(stream, grid.at(i).token / tokens);
  }
};

struct ByChain {
  Grid grid;
  std::uint64_t stream;
  KBH_HOST_DEVICE float operator()(std::uint64_t i) const { return alternating_amplitude(stream, grid.chain(i)); }
};

struct ByPrefix {
  std::uint64_t elements;
  float first;
  float rest;
  KBH_HOST_DEVICE float operator()(std::uint64_t i) const { return i < elements ? first : rest; }
};

}  // namespace kbh::kda
