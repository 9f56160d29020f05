// The plan launches instead of describing a launch.
// expect verdict: rejected
// expect stage: plan
// expect says: a plan describes launches
#include <kbh/sealed.h>

__global__ void nothing(float* y) { y[0] = 0; }

KBH_SEALED_PLAN(shape, plan) {
  nothing<<<1, 1>>>(nullptr);
  plan.run(nothing, {.grid = 1, .block = 1}, plan.output<float>(0));
}
