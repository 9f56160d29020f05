// expect verdict: timed_out
// expect says: loading the submission
#include "honest_topk.hpp"

__attribute__((constructor)) static void never() {
  for (volatile int i = 0;; i = i + 1) {
  }
}

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  solve(problem_of(inputs, outputs));
  return 0;
}
