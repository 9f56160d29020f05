// expect verdict: incorrect
// expect stage: check
// expect says: listed shapes only
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  if (p.n == 7001 && p.batch == 4 && p.k == 16) solve(p);
  return 0;
}
