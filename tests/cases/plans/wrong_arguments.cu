// An argument of another type than the parameter's elements.
// expect verdict: build_failed
// expect stage: build
// expect says: buffer.as<T>() says that you mean it
#include <kbh/sealed.h>

__global__ void copy(const double* x, float* y) { y[0] = static_cast<float>(x[0]); }

KBH_SEALED_PLAN(shape, plan) {
  plan.run(copy, {.grid = 1, .block = 1}, plan.input<float>(0), plan.output<float>(0));
}
