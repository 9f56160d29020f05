// expect verdict: incorrect
// expect stage: check
// expect says: values[3, 0]
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  Problem p = problem_of(inputs, outputs);
  for (int64_t row = 0; row + 1 < p.batch || row == 0; ++row) solve_row(p, row);
  return 0;
}
