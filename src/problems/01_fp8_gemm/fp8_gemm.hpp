// 01_fp8_gemm: out = bf16(weight_scale * (x weight^T)) with e4m3 factors. One file per concept: fp8_gemm.cpp (tensors,
// work, domain), draws.hpp and fills.cpp (data), oracle.cpp, compare.cpp (bounds), cases.cpp, mutants.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::fp8_gemm {

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;

  explicit Sizes(const Shape& shape) : m(shape["M"]), n(shape["N"]), k(shape["K"]) {}
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Row `r` of an array whose rows have `width` elements.
template <typename T>
std::span<T> row_of(std::span<T> array, std::int64_t r, std::int64_t width) {
  return array.subspan(index(r * width), index(width));
}

/// The tensors by name, in the problem's order: state, inputs.
template <typename View>
struct Operands {
  std::span<const View> tensors;

  [[nodiscard]] auto weight() const { return tensors[0].template as<std::uint8_t>(); }  // e4m3 (N, K)
  [[nodiscard]] auto weight_scale() const { return tensors[1].template as<float>(); }   // (N)
  [[nodiscard]] auto x() const { return tensors[2].template as<std::uint8_t>(); }       // e4m3 (M, K)
};

/// outputs[0] (M, N): the sums are exact, so each value is off by the rounding of one fp64 product. scales[0] (M, N):
/// |x_m| |w_n| s_n / sqrt(K) with Euclidean norms, the rms of an output if the signs were random.
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// Redraws a few secret rows of x; `expected` then equals oracle() bit for bit.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected);

/// The case whose data have one sign: the only one where an accumulator that cuts bits off shows as a bias.
inline constexpr std::string_view kOneSign = "one_sign";

/// Of a case whose data are not exact, for outputs of these sizes (compare.cpp derives them).
Bounds zero_mean_bounds(const Sizes& size);
Bounds one_sign_bounds(const Sizes& size);

/// Exact cases bit for bit; the others within the bounds of their data and sizes. Comparison::note of the one-sign case
/// says how the accumulator rounds.
Comparison compare(const Shape& shape, const Case& of, std::span<const ConstTensorView> tensors,
                   const Expected& expected, std::span<const ConstTensorView> outputs);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::fp8_gemm
