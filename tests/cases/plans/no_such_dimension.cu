// The shape has no number of that name.
// expect verdict: rejected
// expect stage: plan
// expect says: the plan itself gave up: rows
#include <kbh/sealed.h>

__global__ void nothing(float* y) { y[0] = 0; }

KBH_SEALED_PLAN(shape, plan) {
  plan.run(nothing, {.grid = shape["rows"], .block = 1}, plan.output<float>(0));
}
