// 04_kahan_softmax: softmax of each row in fp32, whose row sums are compensated. One file per concept: softmax.cpp
// (tensors, work, domain), oracle.cpp, compare.cpp, draws.hpp and cases.cpp, mutants.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::softmax {

/// Rows that nobody listed: 2^20 columns. On them a grade draws the summation cases alone (cases.cpp).
inline constexpr std::int64_t kHiddenVocab = std::int64_t{1} << 20;

struct Sizes {
  std::int64_t batch;
  std::int64_t vocab;
  bool extreme;

  explicit Sizes(const Shape& shape) : batch(shape["batch"]), vocab(shape["vocab"]), extreme(shape["extreme"] != 0) {}
};

/// outputs[0]: y (batch, vocab) in fp64. scales[0], per element: (4 + (m - x)) * y + 2^-104, where m is the row's
/// largest logit; times Bounds::a = 2^-22 it is how far the element may lie off.
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// The oracle of row `row` alone, written into `expected`, which holds the whole shape's arrays.
void oracle_row(const Sizes& size, std::span<const float> x, std::int64_t row, Expected& expected);

/// Elements against the oracle; the sum of each row, in fp64, against 1. Bounds::a bounds the elements, Bounds::group
/// |sum(y) - 1| of a row.
Comparison compare(const Shape& shape, const Case& c, std::span<const ConstTensorView> tensors,
                   const Expected& expected, std::span<const ConstTensorView> outputs);

/// Redraws a few secret rows of a nominal draw and brings `expected` up to date.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::softmax
