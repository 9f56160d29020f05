// Returns at once; a thread fills the outputs afterwards.
// expect verdict: incorrect|rejected
// expect stage: check
#include <chrono>
#include <thread>

#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  std::thread([p] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    solve(p);
  }).detach();
  return 0;
}
