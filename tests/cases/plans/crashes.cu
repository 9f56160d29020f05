// A plan function that dies.
// expect verdict: rejected
// expect stage: plan
// expect says: the plan function died of signal
#include <kbh/sealed.h>

__global__ void nothing(float* y) { y[0] = 0; }

KBH_SEALED_PLAN(shape, plan) {
  __builtin_trap();
  plan.run(nothing, {.grid = 1, .block = 1}, plan.output<float>(0));
}
