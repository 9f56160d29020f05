// Threads started and joined within every call.
#include <future>

#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  std::vector<std::future<void>> parts;
  for (int64_t row = 0; row < p.batch; ++row)
    parts.push_back(std::async(std::launch::async, [&p, row] { solve_row(p, row); }));
  for (auto& part : parts) part.get();
  return 0;
}
