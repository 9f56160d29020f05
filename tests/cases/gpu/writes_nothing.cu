// Leaves the outputs as they were: poisoned.
// expect verdict: incorrect
#include "simple_topk.cuh"

__global__ void topk(const float* x, float* values, long long*, int n, int) {
  if (x[0] != x[0]) values[n] = 0;
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = shape["batch"], .block = 1024}, plan.input<float>(0), plan.output<float>(0),
           plan.output<long long>(1), shape["n"], shape["k"]);
}
