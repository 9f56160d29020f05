// c = a * b in fp64, for the oracles (matrix.hpp): row-major and dense, any size.
#include <cuda_runtime.h>

#include <cstdint>

namespace {
constexpr int kTile = 64;   // rows and columns of a block
constexpr int kDepth = 16;  // of a step in shared memory
constexpr int kEach = 4;    // rows and columns of a thread: 16 x 16 threads
}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    kbh_multiply(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  __shared__ double left[kDepth][kTile + 1];  // transposed; one more, or a column's stores would share a bank
  __shared__ double right[kDepth][kTile];
  const int column = threadIdx.x % 16;
  const int row = threadIdx.x / 16;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * kTile;
  double sums[kEach][kEach] = {};
  for (std::int64_t k0 = 0; k0 < k; k0 += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += 256) {
      const std::int64_t r = first_row + i / kDepth;
      const std::int64_t p = k0 + i % kDepth;
      left[i % kDepth][i / kDepth] = r < m && p < k ? a[r * k + p] : 0;
    }
    for (int i = threadIdx.x; i < kTile * kDepth; i += 256) {
      const std::int64_t p = k0 + i / kTile;
      const std::int64_t j = first_column + i % kTile;
      right[i / kTile][i % kTile] = p < k && j < n ? b[p * n + j] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < kDepth; ++p) {
      double x[kEach];
      double y[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) x[i] = left[p][row + 16 * i];
#pragma unroll
      for (int j = 0; j < kEach; ++j) y[j] = right[p][column + 16 * j];
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fma(x[i], y[j], sums[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t r = first_row + row + 16 * i;
      const std::int64_t q = first_column + column + 16 * j;
      if (r < m && q < n) c[r * n + q] = sums[i][j];
    }
}
