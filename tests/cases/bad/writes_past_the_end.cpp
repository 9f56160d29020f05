// One element too many: the canary or the unmapped page sees it.
// expect verdict: crashed|rejected
// expect stage: check
// expect says: output `indices`
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  solve(p);
  for (int64_t i = 0; i < 1024; ++i) p.indices[p.batch * p.k + i] = 0;
  return 0;
}
