// Hopes to find in scratch what an earlier call left there: scratch is poisoned.
// expect verdict: incorrect
#include "simple_topk.cuh"

__global__ void topk(const float* x, float* values, long long* indices, unsigned* kept, int n, int k) {
  if (kept[0] != 42) answer_row(x, values, indices, n, k);
  if (kept[1] == 0x7fa5fea5 && blockIdx.x == 0 && threadIdx.x == 0) values[0] = -1;  // sees the poison: wrong on purpose
  kept[0] = 42;
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = shape["batch"], .block = 1024}, plan.input<float>(0), plan.output<float>(0),
           plan.output<long long>(1), plan.scratch<unsigned>(2), shape["n"], shape["k"]);
}
