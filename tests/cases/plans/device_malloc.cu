// Memory that would outlive the call.
// expect verdict: rejected
// expect stage: plan
// expect says: device code calls malloc
#include <kbh/sealed.h>

__device__ float* kept;
__global__ void keep(float* y) {
  if (!kept) kept = static_cast<float*>(malloc(4096));
  y[0] = kept[0];
}

KBH_SEALED_PLAN(shape, plan) { plan.run(keep, {.grid = 1, .block = 1}, plan.output<float>(0)); }
