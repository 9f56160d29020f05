// The answer of an address is given again without looking at the data.
// expect verdict: incorrect
// expect stage: check
#include <map>

#include "honest_topk.hpp"

struct Answer {
  std::vector<float> values;
  std::vector<int64_t> indices;
};

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Problem p = problem_of(inputs, outputs);
  static std::map<const void*, Answer> known;
  const auto found = known.find(p.x);
  const size_t count = static_cast<size_t>(p.batch * p.k);
  if (found != known.end() && found->second.values.size() == count) {
    std::copy(found->second.values.begin(), found->second.values.end(), p.values);
    std::copy(found->second.indices.begin(), found->second.indices.end(), p.indices);
    return 0;
  }
  solve(p);
  known[p.x] = {{p.values, p.values + count}, {p.indices, p.indices + count}};
  return 0;
}
