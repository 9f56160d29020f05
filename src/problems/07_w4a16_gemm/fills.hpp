// The tensors of one draw, and the nominal state. Every random choice comes from a secret stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "problem/draw.hpp"
#include "problems/07_w4a16_gemm/draws.hpp"
#include "problems/07_w4a16_gemm/w4a16.hpp"

namespace kbh::w4a16 {

/// w_q, scales and zeros of one draw.
struct State {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint8_t> levels;   // (K/2, N), low nibble: even k
  std::span<std::uint16_t> scales;  // bf16 (K/128, N)
  std::span<std::uint16_t> zeros;   // bf16 (K/128, N)

  State(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw),
        size(draw.shape),
        levels(tensors[0].as<std::uint8_t>()),
        scales(tensors[1].as<std::uint16_t>()),
        zeros(tensors[2].as<std::uint16_t>()) {}

  [[nodiscard]] std::uint64_t stream(std::string_view of) const { return key.stream(of); }
  /// The levels as the 32-level units that draws.hpp makes: rows of w_q are a multiple of 16 bytes.
  [[nodiscard]] std::span<Words> units() const {
    return {reinterpret_cast<Words*>(levels.data()), levels.size() / sizeof(Words)};
  }
};

/// x of one draw.
struct Inputs {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint16_t> x;  // bf16 (M, K)

  Inputs(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw), size(draw.shape), x(tensors[3].as<std::uint16_t>()) {}

  [[nodiscard]] std::uint64_t stream(std::string_view purpose = "") const {
    return key.stream(purpose.empty() ? "x" : "x/" + std::string(purpose));
  }
  [[nodiscard]] Random random(std::string_view purpose) const { return Random(stream(purpose)); }
  [[nodiscard]] std::span<std::uint16_t> row(std::int64_t i) const {
    return x.subspan(index(i * size.k), index(size.k));
  }
};

/// The public distribution: normal weights x 0.02, quantised group by group.
void quantised_normal(const State& state);

}  // namespace kbh::w4a16
