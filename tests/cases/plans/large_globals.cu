// Device variables that could hold former answers.
// expect verdict: rejected
// expect stage: plan
// expect says: __device__ variables take
#include <kbh/sealed.h>

__device__ float answers[1 << 20];
__global__ void keep(const float* x, float* y) {
  answers[threadIdx.x] = x[threadIdx.x];
  y[0] = answers[1023 - threadIdx.x];
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(keep, {.grid = 1, .block = 1024}, plan.input<float>(0), plan.output<float>(0));
}
