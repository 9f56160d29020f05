// More threads per block than the device takes.
// expect verdict: rejected
// expect stage: plan
// expect says: 2048 threads per block, expected at most 1024
#include <kbh/sealed.h>

__global__ void nothing(float* y) { y[0] = 0; }

KBH_SEALED_PLAN(shape, plan) { plan.run(nothing, {.grid = 1, .block = {1024, 2}}, plan.output<float>(0)); }
