// Right until the check must be over, then nothing: timed outputs are compared as well.
// expect verdict: incorrect
// expect stage: time
// mode: bench
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  static int calls = 0;
  if (++calls < 14) solve(problem_of(inputs, outputs));
  return 0;
}
