// Softmax of every row with a compensated fp32 sum, the plain way: rows are shared out to threads.
//
// inputs   x  fp32 (batch, vocab)
// outputs  y  fp32 (batch, vocab)
#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

/// Adds `term` to `high`; what the addition rounds away goes to `low` (Knuth's TwoSum: exact for any two terms).
void add(float& high, float& low, float term) {
  const float sum = high + term;
  const float part = sum - high;
  low += (high - (sum - part)) + (term - part);
  high = sum;
}

/// e[0] + .. + e[n - 1], as if added in twice the precision.
float compensated_sum(const float* e, int64_t n) {
  // Side by side, so that the additions of one lane need not wait for those of another.
  constexpr int64_t kLanes = 16;
  float high[kLanes] = {}, low[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) add(high[lane], low[lane], e[i + lane]);
  for (; i < n; ++i) add(high[0], low[0], e[i]);

  // The merge carries both parts: dropping the low ones here would undo what the terms paid for.
  float sum = 0, rest = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    add(sum, rest, high[lane]);
    rest += low[lane];
  }
  return sum + rest;
}

void softmax_row(const float* x, float* y, int64_t n) {
  const float largest = *std::max_element(x, x + n);
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i] - largest);
  const float inverse = 1 / compensated_sum(y, n);
  for (int64_t i = 0; i < n; ++i) y[i] *= inverse;
}

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new int64_t(context->threads);
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<int64_t*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const int64_t batch = inputs[0].shape[0], n = inputs[0].shape[1];
  const auto* x = static_cast<const float*>(inputs[0].data);
  auto* y = static_cast<float*>(outputs[0].data);
  const int64_t threads = std::min(batch, *static_cast<const int64_t*>(self));

  // Thread t takes rows [batch * t / threads, batch * (t + 1) / threads); the calling thread is thread 0.
  const auto rows_of = [=](int64_t t) {
    for (int64_t row = batch * t / threads; row < batch * (t + 1) / threads; ++row)
      softmax_row(x + row * n, y + row * n, n);
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < threads; ++t) helpers.emplace_back(rows_of, t);
  rows_of(0);
  return 0;  // jthreads join here
}
