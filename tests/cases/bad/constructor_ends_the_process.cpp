// expect verdict: crashed
// expect says: loading the submission
#include <unistd.h>

#include "honest_topk.hpp"

__attribute__((constructor)) static void leave() { ::_exit(0); }

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  solve(problem_of(inputs, outputs));
  return 0;
}
