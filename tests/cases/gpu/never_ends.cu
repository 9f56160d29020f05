// Waits for what nobody writes. It is killed at the deck's limit, and the device serves the next grade.
// expect verdict: timed_out
#include "simple_topk.cuh"

__global__ void topk(const float* x, float* values, long long*, volatile unsigned* word, int n, int) {
  while (*word != 1) {
  }
  values[0] = x[n - 1];
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(topk, {.grid = 1, .block = 32}, plan.input<float>(0), plan.output<float>(0), plan.output<long long>(1),
           plan.scratch<unsigned>(1), shape["n"], shape["k"]);
}
