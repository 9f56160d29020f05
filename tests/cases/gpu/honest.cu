// Nothing wrong with it.
// expect verdict: pass
#include "simple_topk.cuh"

__global__ void topk(const float* x, float* values, long long* indices, int n, int k) {
  answer_row(x, values, indices, n, k);
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = shape["batch"], .block = 1024}, plan.input<float>(0), plan.output<float>(0),
           plan.output<long long>(1), shape["n"], shape["k"]);
}
