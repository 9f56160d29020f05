// How one element of a tensor is drawn: functions of a random word and the element's index, the same bits on a CPU and
// on a GPU. Only + - * /, integer operations and the functions of philox.hpp and numbers.hpp; powers of two are exact.
//
// Indices: element i of q, k, v is channel i % 128 of memory i / 128; element i of s is column i % 128, row
// i / 128 % 128 of memory i / 16384; memory m is sequence m / H, head m % H.
#pragma once

#include <cstdint>

#include <kbh/numbers.hpp>

#include "base/philox.hpp"

namespace kbh::lightning {

inline constexpr std::uint64_t kChannels = 128;
inline constexpr std::uint64_t kElements = kChannels * kChannels;

/// 2^exponent for -126 <= exponent <= 127.
KBH_HOST_DEVICE float power_of_two(std::int32_t exponent) {
  return philox::from_bits(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// e^-x for 0 <= x <= 87; relative error below 1e-5 (x * log2 e is rounded to fp32).
KBH_HOST_DEVICE float exp_minus(float x) { return philox::exp2(philox::sub(0.0f, philox::mul(x, 1.44269504f))); }

/// exp(-factor * 2^(-8 (h + 1) / H)): the decay of head h. For H a power of two these are the slopes of TransNormerLLM
/// and MiniMax-Text-01, which multiplies them by a factor that falls from 1 in the first layer to 1e-5 in the last.
KBH_HOST_DEVICE float head_decay(std::uint64_t h, std::uint64_t heads, float factor) {
  const float exponent = philox::div(philox::mul(-8.0f, philox::to_float(static_cast<std::uint32_t>(h + 1))),
                                     philox::to_float(static_cast<std::uint32_t>(heads)));
  return exp_minus(philox::mul(factor, philox::exp2(exponent)));
}

// ---- q, k, v (and s)
// ---------------------------------------------------------------------------------------------------

struct NormalBf16 {
  float scale;
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t) const {
    return to_bf16(philox::mul(scale, philox::normal(w.v[0])));
  }
};

struct NormalF32 {
  float scale;
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t) const {
    return philox::mul(scale, philox::normal(w.v[0]));
  }
};

/// |normal|: keys and values after SiLU are mostly of one sign, and so is what a memory has gathered of them.
struct PositiveBf16 {
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t) const {
    return static_cast<std::uint16_t>(to_bf16(philox::normal(w.v[0])) & 0x7fffu);
  }
};

struct PositiveF32 {
  float scale;
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t) const {
    return philox::mul(scale, philox::from_bits(philox::to_bits(philox::normal(w.v[0])) & 0x7fffffffu));
  }
};

/// Whole numbers from -most to most, times a unit that is a power of two.
struct IntegerBf16 {
  std::uint32_t most;
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t) const {
    return to_bf16(philox::sub(philox::to_float(philox::below(w.v[0], 2 * most + 1)), philox::to_float(most)));
  }
};

struct IntegerF32 {
  std::uint32_t most;
  float unit;
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t) const {
    return philox::mul(unit,
                       philox::sub(philox::to_float(philox::below(w.v[0], 2 * most + 1)), philox::to_float(most)));
  }
};

/// One channel of each memory, at a random place, holds 2 to 4 or -4 to -2; the others 0.
struct OneHotBf16 {
  std::uint64_t places;  // stream
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    if (i % kChannels != philox::below(philox::words(places, i / kChannels).v[0], kChannels)) return 0;
    const float size = philox::add(2.0f, philox::mul(2.0f, philox::uniform(w.v[0])));
    return to_bf16((w.v[1] & 1u) != 0 ? size : philox::sub(0.0f, size));
  }
};

/// A query that is orthogonal to the key: neighbouring channels swapped, one of them with its sign changed. Every
/// product is exact in fp32 and each pair cancels.
struct OrthogonalBf16 {
  std::uint64_t keys;  // stream of k, drawn as NormalBf16{1}
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words, std::uint64_t i) const {
    const std::uint16_t key = NormalBf16{1.0f}(philox::words(keys, i ^ 1u), i ^ 1u);
    return static_cast<std::uint16_t>(key ^ ((i & 1u) << 15));
  }
};

// ---- amplitudes by place
// ----------------------------------------------------------------------------------------------

/// One amplitude per group of elements, 2^-6 to 2^6 (half of the exponents drawn, two groups at the ends).
struct Amplitudes {
  std::uint64_t stream;
  std::uint64_t lowest;   // group with 2^-6
  std::uint64_t highest;  // group with 2^6
  KBH_HOST_DEVICE float operator()(std::uint64_t group) const {
    if (group == lowest) return 0x1p-6f;
    if (group == highest) return 0x1p6f;
    return power_of_two(static_cast<std::int32_t>(philox::below(philox::words(stream, group).v[0], 13)) - 6);
  }
};

/// What shares an amplitude.
enum class Block : std::uint8_t {
  memory,   // all of a memory
  rows,     // 16 neighbouring rows of s, in all memories, and their channels of k
  columns,  // 16 neighbouring columns of s, in all memories, and their channels of v
};

struct MixedBf16 {
  Amplitudes amplitudes;
  Block block;
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    const std::uint64_t group = block == Block::memory ? i / kChannels : i % kChannels / 16;
    return to_bf16(philox::mul(amplitudes(group), philox::normal(w.v[0])));
  }
};

struct MixedF32 {
  Amplitudes amplitudes;
  Block block;
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t i) const {
    const std::uint64_t group = block == Block::memory ? i / kElements
                                : block == Block::rows ? i / kChannels % kChannels / 16
                                                       : i % kChannels / 16;
    return philox::mul(amplitudes(group), philox::normal(w.v[0]));
  }
};

/// `first` before element `length`, `rest` from there on.
struct PrefixBf16 {
  std::uint64_t length;
  float first;
  float rest;
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    return to_bf16(philox::mul(i < length ? first : rest, philox::normal(w.v[0])));
  }
};

struct PrefixF32 {
  std::uint64_t length;
  float first;
  float rest;
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t i) const {
    return philox::mul(i < length ? first : rest, philox::normal(w.v[0]));
  }
};

// ---- s alone
// -----------------------------------------------------------------------------------------------------------

/// One element in 256 is 2^10 times larger.
struct OutliersF32 {
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t) const {
    return philox::mul((w.v[1] & 0xffu) == 0 ? 0x1p10f : 1.0f, philox::normal(w.v[0]));
  }
};

/// Rows are empty but for one in eight; row 0 is always empty.
struct SparseRowsF32 {
  std::uint64_t rows;  // stream
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t i) const {
    const std::uint64_t row = i / kChannels;
    const bool empty = row % kChannels == 0 || (philox::words(rows, row).v[0] & 7u) != 0;
    return empty ? 0.0f : philox::normal(w.v[0]);
  }
};

/// -(k v^T) / decay * (1 + 0.01 normal): the new token takes back what the memory holds, but for one per cent.
struct CancellingF32 {
  std::uint64_t keys;    // streams of k and v, drawn as NormalBf16{1}
  std::uint64_t values;  //
  std::uint64_t heads;
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t i) const {
    const std::uint64_t memory = i / kElements;
    const std::uint64_t row = i / kChannels;
    const std::uint64_t column = memory * kChannels + i % kChannels;
    const float k = from_bf16(NormalBf16{1.0f}(philox::words(keys, row), row));
    const float v = from_bf16(NormalBf16{1.0f}(philox::words(values, column), column));
    const float kept = philox::add(1.0f, philox::mul(0.01f, philox::normal(w.v[0])));
    return philox::mul(philox::div(philox::mul(philox::sub(0.0f, k), v), head_decay(memory % heads, heads, 1.0f)),
                       kept);
  }
};

/// A decay of e^-5 to e^-80, drawn per head.
struct StrongDecay {
  std::uint64_t stream;
  KBH_HOST_DEVICE float operator()(std::uint64_t h) const {
    return exp_minus(philox::add(5.0f, philox::mul(75.0f, philox::uniform(philox::words(stream, h).v[0]))));
  }
};

/// For strong decays. Memories take turns: what is left of the old one is as large as the new token (s up to 1e35),
/// is lost in rounding, or is a denormal.
struct FadingF32 {
  StrongDecay decay;
  std::uint64_t heads;
  std::uint64_t shift;  // which memory begins
  KBH_HOST_DEVICE float operator()(philox::Words w, std::uint64_t i) const {
    const std::uint64_t memory = i / kElements;
    const float normal = philox::normal(w.v[0]);
    switch ((memory + shift) % 3) {
      case 0:
        return philox::div(normal, decay(memory % heads));
      case 1:
        return normal;
      default:
        return philox::mul(0x1p-20f, normal);
    }
  }
};

}  // namespace kbh::lightning
