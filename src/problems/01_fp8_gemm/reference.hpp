// What 01_fp8_gemm computes, to be read. Plain C++, no tiles, no threads.
#pragma once

#include <cstdint>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::reference {

/// out[m][n] = bf16(weight_scale[n] * sum over k of x[m][k] * weight[n][k])
///
/// x e4m3 (M, K), weight e4m3 (N, K), weight_scale fp32 (N), out bf16 (M, N); all row-major and dense. A product of two
/// e4m3 numbers is exact in fp32; the sums are fp32, and the result is rounded to bf16 once.
inline void fp8_gemm(std::int64_t M, std::int64_t N, std::int64_t K, const std::uint8_t* x, const std::uint8_t* weight,
                     const float* weight_scale, std::uint16_t* out) {
  // Columns of `weight` side by side, so that the innermost loop walks through memory.
  std::vector<float> columns(static_cast<std::size_t>(K * N));
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t k = 0; k < K; ++k) columns[static_cast<std::size_t>(k * N + n)] = from_e4m3(weight[n * K + k]);

  std::vector<float> sums(static_cast<std::size_t>(N));
  for (std::int64_t m = 0; m < M; ++m) {
    sums.assign(sums.size(), 0.0f);
    for (std::int64_t k = 0; k < K; ++k) {
      const float factor = from_e4m3(x[m * K + k]);
      const float* column = columns.data() + k * N;
      for (std::int64_t n = 0; n < N; ++n) sums[static_cast<std::size_t>(n)] += factor * column[n];
    }
    for (std::int64_t n = 0; n < N; ++n) out[m * N + n] = to_bf16(sums[static_cast<std::size_t>(n)] * weight_scale[n]);
  }
}

}  // namespace kbh::reference
