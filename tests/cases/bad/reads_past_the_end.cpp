// Harmless on the heap, a fault here: the buffer ends at an unmapped page in every other slot.
// expect verdict: crashed
// expect stage: check
// expect says: past the end of input `x`
#include "honest_topk.hpp"

static volatile float sink;

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  solve(p);
  for (int64_t i = 0; i < 4096; ++i) sink = p.x[p.batch * p.n + i];
  return 0;
}
