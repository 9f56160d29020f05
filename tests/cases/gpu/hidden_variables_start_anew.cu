// The same with a variable that has no name outside its file.
// expect verdict: pass
#include "simple_topk.cuh"

namespace {
__device__ int calls = 7;
}

__global__ void topk(const float* x, float* values, long long* indices, int n, int k) {
  if (calls == 7) answer_row(x, values, indices, n, k);
}

__global__ void count() { ++calls; }

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = shape["batch"], .block = 1024}, plan.input<float>(0), plan.output<float>(0),
           plan.output<long long>(1), shape["n"], shape["k"]);
  plan.run(count, {.grid = 1, .block = 1});
}
