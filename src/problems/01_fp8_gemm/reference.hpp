// What 01_fp8_gemm computes, to be read. Plain C++, no tiles, no threads.
#pragma once

#include <cstdint>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::reference {

/// out[i][j] = bf16(weight_scale[j] * sum over p of x[i][p] * weight[j][p])
///
/// x e4m3 (m, k), weight e4m3 (n, k), weight_scale fp32 (n), out bf16 (m, n); all row-major and dense. A product of two
/// e4m3 numbers is exact in fp32; the sums are fp32, and the result is rounded to bf16 once.
inline void fp8_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint8_t* x, const std::uint8_t* weight,
                     const float* weight_scale, std::uint16_t* out) {
  // Rows of weight become columns, so that the innermost loop walks through memory.
  std::vector<float> transposed(static_cast<std::size_t>(k * n));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t p = 0; p < k; ++p) transposed[static_cast<std::size_t>(p * n + j)] = from_e4m3(weight[j * k + p]);

  for (std::int64_t i = 0; i < m; ++i) {
    std::vector<float> sums(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < k; ++p) {
      const float factor = from_e4m3(x[i * k + p]);
      const float* row = transposed.data() + p * n;
      for (std::int64_t j = 0; j < n; ++j) sums[static_cast<std::size_t>(j)] += factor * row[j];
    }
    for (std::int64_t j = 0; j < n; ++j) out[i * n + j] = to_bf16(sums[static_cast<std::size_t>(j)] * weight_scale[j]);
  }
}

}  // namespace kbh::reference
