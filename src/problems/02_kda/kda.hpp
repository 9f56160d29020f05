// 02_kda: the chunked forward pass of Kimi Delta Attention. One file per concept: kda.cpp (tensors, work, domain),
// oracle.cpp, refresh.cpp, compare.cpp, cases.cpp with draws.hpp, mutants.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::kda {

/// Tokens of one chunk: a constant of the problem's text.
inline constexpr std::int64_t kChunk = 64;

struct Sizes {
  std::int64_t batch;
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t key_width;    // K
  std::int64_t value_width;  // V

  explicit Sizes(const Shape& shape)
      : batch(shape["B"]), tokens(shape["T"]), heads(shape["H"]), key_width(shape["K"]), value_width(shape["V"]) {}

  /// Independent recurrences: one per batch and head, number b * heads + h.
  [[nodiscard]] std::int64_t chains() const { return batch * heads; }
  [[nodiscard]] std::int64_t chunks() const { return tokens / kChunk; }
  [[nodiscard]] std::int64_t rows() const { return batch * tokens * heads; }
  /// The row of token t of a chain in a (B, T, H, width) tensor.
  [[nodiscard]] std::int64_t row(std::int64_t chain, std::int64_t t) const {
    return (chain / heads * tokens + t) * heads + chain % heads;
  }
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Where the inputs stand among the tensors of a call.
inline constexpr std::size_t kQ = 0;
inline constexpr std::size_t kK = 1;
inline constexpr std::size_t kV = 2;
inline constexpr std::size_t kG = 3;
inline constexpr std::size_t kBeta = 4;

/// outputs[0]: o, (B, T, H, V).
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// The same for one chain alone: writes its rows of `o`, all of (B, T, H, V).
void solve_chain(const Sizes& size, std::span<const ConstTensorView> tensors, std::int64_t chain, std::span<double> o);

/// One secret chain gets new nominal inputs and a new answer.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected);

Comparison compare(const Shape& shape, const Case& c, std::span<const ConstTensorView> tensors,
                   const Expected& expected, std::span<const ConstTensorView> outputs);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::kda
