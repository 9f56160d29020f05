// expect verdict: crashed
// expect says: signal 11
#include "honest_topk.hpp"

static volatile int sink;
__attribute__((noinline)) static int deeper(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  sink = sink + deeper(depth + 1);
  return room[0];
}

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  (void)inputs;
  (void)outputs;
  return deeper(0);
}
