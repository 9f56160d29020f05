// Noise is kept up to a limit and never parsed.
// expect says: log truncated
#include <cstdio>

#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  solve(problem_of(inputs, outputs));
  for (int i = 0; i < 2000; ++i) std::printf("PASS peak_fraction: 1.0000 %060d\n", i);
  std::fflush(stdout);
  return 0;
}
