// 05_topk: the k largest values of each row, sorted descending, with their indices. One file per concept:
// topk.cpp (tensors, work, domain), oracle.cpp, compare.cpp, cases.cpp with its fills, mutants.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::topk {

struct Sizes {
  std::int64_t batch;
  std::int64_t n;
  std::int64_t k;

  explicit Sizes(const Shape& shape) : batch(shape["batch"]), n(shape["n"]), k(shape["k"]) {}
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Row `r` of a (batch, width) array.
template <typename T>
std::span<T> row_of(std::span<T> array, std::int64_t r, std::int64_t width) {
  return array.subspan(index(r * width), index(width));
}

/// outputs[0]: the exact descending values, (batch, k); which of two zeros is meant is left open. outputs[1] is empty:
/// the comparison derives what it needs from the inputs.
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// The policy of problem.toml. Reads nothing but the given buffers, whatever the outputs hold.
Comparison compare(const Shape& shape, const Case&, std::span<const ConstTensorView> tensors, const Expected& expected,
                   std::span<const ConstTensorView> outputs);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::topk
