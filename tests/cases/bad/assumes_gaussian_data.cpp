// Takes what lies above a fixed threshold and calls it the top.
// expect verdict: incorrect
// expect stage: check
#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  for (int64_t row = 0; row < p.batch; ++row) {
    std::vector<std::pair<float, int64_t>> best;
    for (int64_t i = 0; i < p.n; ++i)
      if (p.x[row * p.n + i] > 1.5F) best.emplace_back(p.x[row * p.n + i], i);
    std::sort(best.begin(), best.end(), [](auto& a, auto& b) { return a.first > b.first; });
    best.resize(static_cast<size_t>(p.k));
    for (int64_t i = 0; i < p.k; ++i) {
      p.values[row * p.k + i] = best[static_cast<size_t>(i)].first;
      p.indices[row * p.k + i] = best[static_cast<size_t>(i)].second;
    }
  }
  return 0;
}
