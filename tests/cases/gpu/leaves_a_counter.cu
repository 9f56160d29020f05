// Right, but it leaves its counter as it is: the next call would begin with it.
// expect verdict: rejected
// expect says: counters[0]
#include "simple_topk.cuh"

__global__ void topk(const float* x, float* values, long long* indices, unsigned* done, int n, int k) {
  answer_row(x, values, indices, n, k);
  if (threadIdx.x == 0) atomicAdd(done, 1u);
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = shape["batch"], .block = 1024}, plan.input<float>(0), plan.output<float>(0),
           plan.output<long long>(1), plan.counters(1), shape["n"], shape["k"]);
}
