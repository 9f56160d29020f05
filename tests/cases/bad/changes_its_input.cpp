// expect verdict: crashed
// expect stage: check
// expect says: read-only
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  solve(p);
  const_cast<float*>(p.x)[1] = 0;
  return 0;
}
