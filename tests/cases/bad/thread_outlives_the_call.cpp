// expect verdict: rejected
// expect stage: check
// expect says: went on working after kbh_run had returned
#include <thread>

#include "honest_topk.hpp"

static volatile long counter;

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  solve(problem_of(inputs, outputs));
  static bool started = false;
  if (!started)
    std::thread([] {
      for (;;) counter = counter + 1;
    }).detach();
  started = true;
  return 0;
}
