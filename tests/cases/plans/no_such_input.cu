// A tensor that the problem does not have.
// expect verdict: rejected
// expect stage: plan
// expect says: the problem has no input number 7
#include <kbh/sealed.h>

__global__ void copy(const float* x, float* y) { y[0] = x[0]; }

KBH_SEALED_PLAN(shape, plan) {
  plan.run(copy, {.grid = 1, .block = 1}, plan.input<float>(7), plan.output<float>(0));
}
