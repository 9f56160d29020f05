// How one element of a large tensor is drawn, on the CPU and on a GPU with the same bits.
#pragma once

#include <cstdint>

#include <kbh/numbers.hpp>

#include "base/philox.hpp"

namespace kbh::moe {

struct NormalBf16 {
  float scale;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t) const {
    return to_bf16(philox::mul(philox::normal(w.v[0]), scale));
  }
};

/// Each stretch of `length` elements (a row of hidden, an expert's weights) has a scale of its own.
struct StretchedNormalBf16 {
  const float* scales;
  std::uint64_t length;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    return to_bf16(philox::mul(philox::normal(w.v[0]), scales[i / length]));
  }
};

/// Each column of a matrix of `width` columns has a scale of its own.
struct ColumnNormalBf16 {
  const float* scales;
  std::uint64_t width;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    return to_bf16(philox::mul(philox::normal(w.v[0]), scales[i % width]));
  }
};

/// The first `prefix` elements have another scale than the rest.
struct PrefixNormalBf16 {
  std::uint64_t prefix;
  float scale;
  float rest_scale;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    return to_bf16(philox::mul(philox::normal(w.v[0]), i < prefix ? scale : rest_scale));
  }
};

/// Normal, but for two columns that are `value` and -`value`.
struct OpposedNormalBf16 {
  std::uint64_t width;
  std::uint64_t first;
  std::uint64_t second;
  float scale;
  float value;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    const std::uint64_t column = i % width;
    if (column == first) return to_bf16(value);
    if (column == second) return to_bf16(-value);
    return to_bf16(philox::mul(philox::normal(w.v[0]), scale));
  }
};

/// Weights (.., width, columns) whose matrix rows `first` and `second` are equal.
struct TwinRowsNormalBf16 {
  std::uint64_t stream;  // that the words come from
  std::uint64_t width;
  std::uint64_t columns;
  std::uint64_t first;
  std::uint64_t second;
  float scale;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    const bool twin = i / columns % width == second;
    const std::uint32_t word = twin ? philox::words(stream, i - (second - first) * columns).v[0] : w.v[0];
    return to_bf16(philox::mul(philox::normal(word), scale));
  }
};

/// 1 in the first column, +1 or -1 in the last, elsewhere mostly 0: +1 or -1 where `word` falls below `density`.
struct SparseSignBf16 {
  std::uint64_t width;
  std::uint32_t density;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    const std::uint64_t column = i % width;
    if (column == 0) return to_bf16(1.0f);
    if (column + 1 != width && w.v[1] >= density) return 0;
    return to_bf16((w.v[0] & 1u) != 0 ? 1.0f : -1.0f);
  }
};

/// Weights (.., width, columns): `first` in matrix row 0, elsewhere integers from -span to span.
struct IntegerBf16 {
  std::uint64_t width;
  std::uint64_t columns;
  float first;
  std::uint32_t span;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    if (first != 0 && i / columns % width == 0) return to_bf16(first);
    const auto drawn = static_cast<std::int32_t>(philox::below(w.v[0], 2 * span + 1));
    return to_bf16(static_cast<float>(drawn - static_cast<std::int32_t>(span)));
  }
};

/// One 1 per row, elsewhere 0.
struct OneHotBf16 {
  const std::int32_t* hot;  // column per row
  std::uint64_t width;

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words, std::uint64_t i) const {
    return to_bf16(i % width == static_cast<std::uint64_t>(hot[i / width]) ? 1.0f : 0.0f);
  }
};

}  // namespace kbh::moe
