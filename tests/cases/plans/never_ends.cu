// A plan function that does not return.
// expect verdict: timed_out
// expect stage: plan
// expect says: the plan function took more than
#include <kbh/sealed.h>

__global__ void nothing(float* y) { y[0] = 0; }

KBH_SEALED_PLAN(shape, plan) {
  for (volatile int i = 0;; i = i + 1) {
  }
  plan.run(nothing, {.grid = 1, .block = 1}, plan.output<float>(0));
}
