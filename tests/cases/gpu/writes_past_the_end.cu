// One value too many behind the last row: random bytes lie there.
// expect verdict: rejected|crashed
// expect says: values
#include "simple_topk.cuh"

__global__ void topk(const float* x, float* values, long long* indices, int n, int k) {
  answer_row(x, values, indices, n, k);
  if (blockIdx.x == gridDim.x - 1) values[static_cast<long long>(gridDim.x) * k] = 1;
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = shape["batch"], .block = 1024}, plan.input<float>(0), plan.output<float>(0),
           plan.output<long long>(1), shape["n"], shape["k"]);
}
