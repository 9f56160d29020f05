// expect verdict: build_failed
// expect stage: build
// expect says: submission.cpp:9
#include <kbh/host.h>

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  (void)inputs;
  (void)outputs;
  return undeclared_name;
}
