// W4A16 matrix product, to be read: the same mathematics as reference.py in plain C++.
//
//   x       bf16  (M, K)
//   w_q     uint8 (K/2, N)    byte (r, j) holds level q(2r, j) in its low nibble and q(2r+1, j) in its high one
//   scales  bf16  (K/128, N)
//   zeros   bf16  (K/128, N)  integers 0 to 15
//   out     bf16  (M, N)      out(i, j) = sum over k of x(i, k) * (q(k, j) - zero(k/128, j)) * scale(k/128, j)
//
// (q - zero) * scale is exact in fp32. The sum is fp32, in the order of k; it is rounded to bf16 once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::reference::w4a16 {

using Bf16 = std::uint16_t;

/// The weights as fp32 (K, N).
inline std::vector<float> dequantise(std::size_t n, std::size_t k, std::span<const std::uint8_t> w_q,
                                     std::span<const Bf16> scales, std::span<const Bf16> zeros) {
  std::vector<float> weights(k * n);
  for (std::size_t row = 0; row < k; ++row)
    for (std::size_t j = 0; j < n; ++j) {
      const std::uint8_t pair = w_q[row / 2 * n + j];
      const auto level = static_cast<float>(row % 2 == 0 ? pair & 15 : pair >> 4);
      const std::size_t group = row / 128 * n + j;
      weights[row * n + j] = (level - from_bf16(zeros[group])) * from_bf16(scales[group]);
    }
  return weights;
}

inline void gemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::span<const std::uint8_t> w_q,
                 std::span<const Bf16> scales, std::span<const Bf16> zeros, std::span<const Bf16> x,
                 std::span<Bf16> out) {
  const auto m = static_cast<std::size_t>(rows);
  const auto n = static_cast<std::size_t>(columns);
  const auto k = static_cast<std::size_t>(depth);
  const std::vector<float> weights = dequantise(n, k, w_q, scales, zeros);
  std::vector<float> sums(n);
  for (std::size_t i = 0; i < m; ++i) {
    sums.assign(n, 0.0f);
    for (std::size_t p = 0; p < k; ++p) {
      const float factor = from_bf16(x[i * k + p]);
      for (std::size_t j = 0; j < n; ++j) sums[j] += factor * weights[p * n + j];
    }
    for (std::size_t j = 0; j < n; ++j) out[i * n + j] = to_bf16(sums[j]);
  }
}

}  // namespace kbh::reference::w4a16
