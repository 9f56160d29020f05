// A right and slow top-k for the cases of this folder: one block per row, one pass over it per element of the answer.
#pragma once
#include <kbh/sealed.h>

/// Orders (value, index) pairs strictly: larger values first, then smaller indices. +0 and -0 are equal values.
__device__ inline unsigned long long key_of(float value, unsigned index) {
  const unsigned bits = __float_as_uint(value == 0 ? 0.0f : value);
  const unsigned ordered = (bits >> 31) ? ~bits : bits | 0x80000000u;
  return (static_cast<unsigned long long>(ordered) << 32) | (0xffffffffu - index);
}

/// The whole block answers row blockIdx.x.
__device__ inline void answer_row(const float* x, float* values, long long* indices, int n, int k) {
  __shared__ unsigned long long best;
  const float* row = x + static_cast<long long>(blockIdx.x) * n;
  unsigned long long below = ~0ull;
  for (int j = 0; j < k; ++j) {
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    unsigned long long mine = 0;
    for (unsigned i = threadIdx.x; i < static_cast<unsigned>(n); i += blockDim.x) {
      const unsigned long long key = key_of(row[i], i);
      if (key < below && key > mine) mine = key;
    }
    atomicMax(&best, mine);
    __syncthreads();
    below = best;
    const unsigned index = 0xffffffffu - static_cast<unsigned>(below);
    if (threadIdx.x == 0) {
      values[static_cast<long long>(blockIdx.x) * k + j] = row[index];
      indices[static_cast<long long>(blockIdx.x) * k + j] = index;
    }
    __syncthreads();
  }
}
