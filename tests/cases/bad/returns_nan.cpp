// expect verdict: incorrect
// expect stage: check
// expect says: values[
#include <limits>

#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  solve(p);
  for (int64_t i = 0; i < p.batch * p.k; ++i) p.values[i] = std::numeric_limits<float>::quiet_NaN();
  return 0;
}
