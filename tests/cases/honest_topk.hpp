// A right answer for 05_topk, as plain as can be: what the cases start from.
#pragma once

#include <kbh/host.h>

#include <algorithm>
#include <numeric>
#include <vector>

struct Problem {
  const float* x;
  float* values;
  int64_t* indices;
  int64_t batch, n, k;
};

inline Problem problem_of(const kbh_tensor* inputs, const kbh_tensor* outputs) {
  return {static_cast<const float*>(inputs[0].data),
          static_cast<float*>(outputs[0].data),
          static_cast<int64_t*>(outputs[1].data),
          inputs[0].shape[0],
          inputs[0].shape[1],
          outputs[0].shape[1]};
}

inline void solve_row(const Problem& p, int64_t row) {
  const float* x = p.x + row * p.n;
  std::vector<int64_t> order(static_cast<size_t>(p.n));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + p.k, order.end(), [&](int64_t a, int64_t b) { return x[a] > x[b]; });
  for (int64_t i = 0; i < p.k; ++i) {
    p.values[row * p.k + i] = x[order[static_cast<size_t>(i)]];
    p.indices[row * p.k + i] = order[static_cast<size_t>(i)];
  }
}

inline void solve(const Problem& p) {
  for (int64_t row = 0; row < p.batch; ++row) solve_row(p, row);
}
