// More launches than a plan may hold.
// expect verdict: rejected
// expect stage: plan
// expect says: 33 timed launches, expected at most 32
#include <kbh/sealed.h>

__global__ void nothing(float* y) { y[0] = 0; }

KBH_SEALED_PLAN(shape, plan) {
  for (int i = 0; i < 33; ++i) plan.run(nothing, {.grid = 1, .block = 1}, plan.output<float>(0));
}
