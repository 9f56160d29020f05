// 06_moe_swiglu: out = silu(x W_gate[e]) * (x W_up[e]) for rows x that stand in the order of their expert e. One file
// per concept: moe.cpp (tensors, work, domain), draws.hpp (elements), routing (rows per expert), data.hpp and
// *_cases.cpp, oracle.cpp (oracle, refresh, compare), mutants.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::moe {

struct Sizes {
  std::int64_t tokens;   // T_total
  std::int64_t width;    // H
  std::int64_t columns;  // I
  std::int64_t experts;  // E
  std::int64_t copies;   // K: each token goes to that many experts

  explicit Sizes(const Shape& shape)
      : tokens(shape["T_total"]), width(shape["H"]), columns(shape["I"]), experts(shape["E"]), copies(shape["K"]) {}

  [[nodiscard]] std::int64_t rows() const { return tokens * copies; }
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// outputs[0]: (rows, I) in fp64; scales[0]: what Bounds::a multiplies, max(rms of the row, rms of the tensor / 16).
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// Draws a few secret rows of hidden anew and computes them alone.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected);

Comparison compare(const Shape& shape, const Case& of, std::span<const ConstTensorView> tensors,
                   const Expected& expected, std::span<const ConstTensorView> outputs);

/// reference.hpp on tensors.
void honest(const Shape& shape, std::span<const ConstTensorView> tensors, std::span<const TensorView> outputs);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::moe
