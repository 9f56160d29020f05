// Casts the const away and writes to its input: the worker maps inputs read-only.
// expect verdict: crashed
// expect says: CUDA_ERROR
#include "simple_topk.cuh"

__global__ void topk(const float* x, float* values, long long* indices, int n, int k) {
  answer_row(x, values, indices, n, k);
  const_cast<float*>(x)[blockIdx.x] = 0;
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = shape["batch"], .block = 1024}, plan.input<float>(0), plan.output<float>(0),
           plan.output<long long>(1), shape["n"], shape["k"]);
}
