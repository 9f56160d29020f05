// W4A16 matrix product, the plain way: a row of weights is dequantised, then added to every row of sums.
//
// state    w_q      uint8 (K/2, N)    low nibble: even k, high nibble: odd k
//          scales   bf16 (K/128, N)
//          zeros    bf16 (K/128, N)
// inputs   x        bf16 (M, K)
// outputs  out      bf16 (M, N) = x @ ((q - zero) * scale)
#include <kbh/host.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include <kbh/numbers.hpp>

namespace {

constexpr int64_t kGroup = 128;
constexpr int64_t kSums = 32768;  // sums of a block of columns: 128 KiB stay in a cache
constexpr int64_t kNarrowest = 256;

struct Weights {
  const uint8_t* levels;
  const uint16_t* scales;
  const uint16_t* zeros;
  int64_t columns;
  int threads;
};

/// (q - zero) * scale of row k, columns [first, first + count).
void dequantise_row(const Weights& w, int64_t k, int64_t first, int64_t count, float* row) {
  const uint8_t* pairs = w.levels + k / 2 * w.columns + first;
  const uint16_t* scales = w.scales + k / kGroup * w.columns + first;
  const uint16_t* zeros = w.zeros + k / kGroup * w.columns + first;
  const int shift = k % 2 == 0 ? 0 : 4;
  for (int64_t j = 0; j < count; ++j) {
    const auto level = static_cast<float>(pairs[j] >> shift & 15);
    row[j] = (level - kbh::from_bf16(zeros[j])) * kbh::from_bf16(scales[j]);
  }
}

void multiply_columns(const Weights& w, const uint16_t* x, int64_t m, int64_t k_count, int64_t first, int64_t count,
                      uint16_t* out) {
  std::vector<float> sums(m * count);
  std::vector<float> row(count);
  for (int64_t k = 0; k < k_count; ++k) {
    dequantise_row(w, k, first, count, row.data());
    for (int64_t i = 0; i < m; ++i) {
      const float factor = kbh::from_bf16(x[i * k_count + k]);
      float* to = &sums[i * count];
      for (int64_t j = 0; j < count; ++j) to[j] += factor * row[j];
    }
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < count; ++j) out[i * w.columns + first + j] = kbh::to_bf16(sums[i * count + j]);
}

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  const kbh_tensor* state = context->state;
  *self = new Weights{static_cast<const uint8_t*>(state[0].data), static_cast<const uint16_t*>(state[1].data),
                      static_cast<const uint16_t*>(state[2].data), state[0].shape[1], context->threads};
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<Weights*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const auto& weights = *static_cast<const Weights*>(self);
  const int64_t m = inputs[0].shape[0], k = inputs[0].shape[1], n = weights.columns;
  const auto* x = static_cast<const uint16_t*>(inputs[0].data);
  auto* out = static_cast<uint16_t*>(outputs[0].data);

  // Few rows take wide blocks: long stretches of memory. Thread t takes every `threads`-th block; the calling thread is
  // thread 0.
  const int64_t threads = weights.threads;
  const int64_t block = std::min((n + threads - 1) / threads, std::max(kNarrowest, kSums / m));
  const auto blocks_of = [=, &weights](int64_t t) {
    for (int64_t first = t * block; first < n; first += threads * block)
      multiply_columns(weights, x, m, k, first, std::min(block, n - first), out);
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < threads; ++t) helpers.emplace_back(blocks_of, t);
  blocks_of(0);
  return 0;  // jthreads join here
}
