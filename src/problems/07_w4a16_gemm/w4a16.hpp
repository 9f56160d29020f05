// 07_w4a16_gemm: bf16 activations times 4-bit weights, which have a scale and a zero point for every 128 of K. One file
// per concept: w4a16.cpp (tensors, work, domain), oracle.cpp, cases.cpp with its fills, mutants.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::w4a16 {

/// Weights of one column that share a scale and a zero point.
constexpr std::int64_t kGroup = 128;
/// N is a multiple of this many columns.
constexpr std::int64_t kColumnUnit = 16;

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;

  explicit Sizes(const Shape& shape) : m(shape["M"]), n(shape["N"]), k(shape["K"]) {}
  [[nodiscard]] std::int64_t groups() const { return k / kGroup; }
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The exact products in fp64, (M, N), and per element |x_i| |w_j| / sqrt(K), what its tolerance is measured in.
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// Turns the rows of x by a secret number of places, negates a secret half of them and draws two anew, wholly (M = 1:
/// the only one). No row stays where it was; `expected` follows at the cost of the new rows' products.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected);

Comparison compare(const Shape& shape, const Case& of, std::span<const ConstTensorView> tensors,
                   const Expected& expected, std::span<const ConstTensorView> outputs);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::w4a16
