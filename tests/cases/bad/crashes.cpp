// expect verdict: crashed
// expect stage: check
// expect says: signal 11
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  (void)inputs;
  (void)outputs;
  volatile int* nowhere = nullptr;
  *nowhere = 1;
  return 0;
}
