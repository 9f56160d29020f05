// Top-k of every row, the plain way: rows are shared out to threads, and each row keeps its k best in a heap.
//
// inputs   x        fp32 (batch, n)
// outputs  values   fp32 (batch, k), descending
//          indices  int64 (batch, k), x[indices] == values
#include <kbh/host.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

struct Entry {
  float value;
  int64_t index;
};

bool greater(const Entry& a, const Entry& b) { return a.value > b.value; }

/// Writes the k greatest of x[0..n) and where they stand. `heap` is room that the caller reuses.
void top_k_row(const float* x, int64_t n, int64_t k, float* values, int64_t* indices, std::vector<Entry>& heap) {
  heap.clear();
  for (int64_t i = 0; i < k; ++i) heap.push_back({x[i], i});
  std::make_heap(heap.begin(), heap.end(), greater);  // ordered by `greater`, the front is the smallest of the k best

  for (int64_t i = k; i < n; ++i) {
    if (x[i] <= heap.front().value) continue;
    std::pop_heap(heap.begin(), heap.end(), greater);
    heap.back() = {x[i], i};
    std::push_heap(heap.begin(), heap.end(), greater);
  }

  std::sort_heap(heap.begin(), heap.end(), greater);
  for (int64_t i = 0; i < k; ++i) {
    values[i] = heap[i].value;
    indices[i] = heap[i].index;
  }
}

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new int64_t(context->threads);
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<int64_t*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const int64_t batch = inputs[0].shape[0], n = inputs[0].shape[1], k = outputs[0].shape[1];
  const auto* x = static_cast<const float*>(inputs[0].data);
  auto* values = static_cast<float*>(outputs[0].data);
  auto* indices = static_cast<int64_t*>(outputs[1].data);
  const int64_t threads = std::min(batch, *static_cast<const int64_t*>(self));

  // Thread t takes rows [batch * t / threads, batch * (t + 1) / threads); the calling thread is thread 0.
  const auto rows_of = [=](int64_t t) {
    std::vector<Entry> heap;
    for (int64_t row = batch * t / threads; row < batch * (t + 1) / threads; ++row)
      top_k_row(x + row * n, n, k, values + row * k, indices + row * k, heap);
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < threads; ++t) helpers.emplace_back(rows_of, t);
  rows_of(0);
  return 0;  // jthreads join here
}
