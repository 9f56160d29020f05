// A kernel that would write to its input is refused by the compiler.
// expect verdict: build_failed
// expect stage: build
// expect says: the kernel would write to a read-only buffer
#include <kbh/sealed.h>

__global__ void change(float* x, float* y) { y[0] = x[0] = 1; }

KBH_SEALED_PLAN(shape, plan) {
  plan.run(change, {.grid = 1, .block = 1}, plan.input<float>(0), plan.output<float>(0));
}
