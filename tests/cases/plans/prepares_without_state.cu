// Prepared data of a problem that has no state.
// expect verdict: rejected
// expect stage: plan
// expect says: prepared data of 4096 bytes, expected at most 0
#include <kbh/sealed.h>

__global__ void fill(float* p) { p[threadIdx.x] = 1; }
__global__ void copy(const float* p, float* y) { y[threadIdx.x] = p[threadIdx.x]; }

KBH_SEALED_PLAN(shape, plan) {
  auto table = plan.prepared<float>(1024);
  plan.prepare(fill, {.grid = 1, .block = 1024}, table);
  plan.run(copy, {.grid = 1, .block = 8}, table, plan.output<float>(0));
}
