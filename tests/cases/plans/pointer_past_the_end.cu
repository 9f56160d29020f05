// An argument that points behind its buffer.
// expect verdict: rejected
// expect stage: plan
// expect says: points
// expect says: bytes into input of
#include <kbh/sealed.h>

__global__ void copy(const float* x, float* y) { y[0] = x[0]; }

KBH_SEALED_PLAN(shape, plan) {
  plan.run(copy, {.grid = 1, .block = 1}, plan.input<float>(0) + shape["batch"] * shape["n"], plan.output<float>(0));
}
