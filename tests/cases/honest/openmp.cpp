// mode: grade
// flags: -fopenmp
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
#pragma omp parallel for
  for (int64_t row = 0; row < p.batch; ++row) solve_row(p, row);
  return 0;
}
