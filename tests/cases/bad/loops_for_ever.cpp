// expect verdict: timed_out
// expect stage: check
// expect says: no return within 2 s
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  (void)inputs;
  (void)outputs;
  for (volatile int i = 0;; i = i + 1) {
  }
}
