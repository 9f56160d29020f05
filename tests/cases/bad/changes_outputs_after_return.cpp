// Right when it returns, changed two milliseconds later.
// expect verdict: rejected
// expect stage: check
// expect says: changed after kbh_run had returned
#include <chrono>
#include <thread>

#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  solve(p);
  std::thread([p] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    p.values[0] = 1;
  }).detach();
  return 0;
}
