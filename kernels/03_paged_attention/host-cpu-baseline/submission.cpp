// Paged attention, one decode step, the plain way: threads share out the sequences' heads of the cache; each of them
// makes two passes over its tokens, scores first, then the weighted sum of the values.
//
// inputs   query        bf16  (batch, num_heads, head_dim)
//          kv_cache     bf16  (total_pages, page_size, num_kv_heads, 2 * head_dim), [K | V]
//          block_table  int32 (batch, pages_per_seq)
//          seq_lens     int32 (batch)
// outputs  out          bf16  (batch, num_heads, head_dim)
#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <kbh/numbers.hpp>

namespace {

using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t kLanes = sizeof(Lanes) / sizeof(float);  // divides every head_dim

struct Call {
  int64_t batch, num_heads, num_kv_heads, head_dim, page_size, pages_per_seq;
  const uint16_t* query;
  const uint16_t* kv_cache;
  const int32_t* block_table;
  const int32_t* seq_lens;
  uint16_t* out;

  int64_t group() const { return num_heads / num_kv_heads; }

  /// [K | V] of a token.
  const uint16_t* row(int64_t sequence, int64_t token, int64_t kv_head) const {
    const int64_t page = block_table[sequence * pages_per_seq + token / page_size];
    return kv_cache + ((page * page_size + token % page_size) * num_kv_heads + kv_head) * 2 * head_dim;
  }
};

void widen(const uint16_t* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = kbh::from_bf16(from[i]);
}

/// Sixteen sums side by side, which the compiler would not make of one: it may not reorder additions.
float dot(const float* a, const float* b, int64_t n) {
  Lanes sums{};
  for (int64_t i = 0; i < n; i += kLanes) {
    Lanes x, y;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    sums += x * y;
  }
  float sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

/// All query heads that read one head of the cache, in one sequence. Holds the memory that it needs from job to job.
class Attention {
 public:
  void run(const Call& call, int64_t sequence, int64_t kv_head) {
    const int64_t group = call.group(), width = call.head_dim, length = call.seq_lens[sequence];
    const int64_t first = (sequence * call.num_heads + kv_head * group) * width;
    q_.resize(group * width);
    widen(call.query + first, group * width, q_.data());
    row_.resize(width);
    weights_.resize(group * length);
    sums_.assign(group * width, 0);
    totals_.assign(group, 0);

    const float scale = 1 / std::sqrt(static_cast<float>(width));
    for (int64_t t = 0; t < length; ++t) {
      widen(call.row(sequence, t, kv_head), width, row_.data());
      for (int64_t h = 0; h < group; ++h) weights_[h * length + t] = dot(&q_[h * width], row_.data(), width) * scale;
    }
    for (int64_t h = 0; h < group; ++h) totals_[h] = exponentiate(&weights_[h * length], length);
    for (int64_t t = 0; t < length; ++t) {
      widen(call.row(sequence, t, kv_head) + width, width, row_.data());
      for (int64_t h = 0; h < group; ++h) add(&sums_[h * width], weights_[h * length + t], row_.data(), width);
    }
    for (int64_t h = 0; h < group; ++h)
      for (int64_t d = 0; d < width; ++d)
        call.out[first + h * width + d] = kbh::to_bf16(sums_[h * width + d] / totals_[h]);
  }

 private:
  /// Scores become e^(score - largest); returns their sum.
  static float exponentiate(float* scores, int64_t n) {
    const float largest = *std::max_element(scores, scores + n);
    float total = 0;
    for (int64_t t = 0; t < n; ++t) {
      scores[t] = std::exp(scores[t] - largest);
      total += scores[t];
    }
    return total;
  }

  static void add(float* sums, float weight, const float* value, int64_t n) {
    for (int64_t d = 0; d < n; ++d) sums[d] += weight * value[d];
  }

  std::vector<float> q_, row_, weights_, sums_, totals_;
};

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new int64_t(context->threads);
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<int64_t*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const Call call{.batch = inputs[0].shape[0],
                  .num_heads = inputs[0].shape[1],
                  .num_kv_heads = inputs[1].shape[2],
                  .head_dim = inputs[0].shape[2],
                  .page_size = inputs[1].shape[1],
                  .pages_per_seq = inputs[2].shape[1],
                  .query = static_cast<const uint16_t*>(inputs[0].data),
                  .kv_cache = static_cast<const uint16_t*>(inputs[1].data),
                  .block_table = static_cast<const int32_t*>(inputs[2].data),
                  .seq_lens = static_cast<const int32_t*>(inputs[3].data),
                  .out = static_cast<uint16_t*>(outputs[0].data)};
  const int64_t jobs = call.batch * call.num_kv_heads;
  const int64_t threads = std::min(jobs, *static_cast<const int64_t*>(self));

  // Thread t takes jobs [jobs * t / threads, jobs * (t + 1) / threads); the calling thread is thread 0.
  const auto share = [&](int64_t t) {
    Attention attention;
    for (int64_t job = jobs * t / threads; job < jobs * (t + 1) / threads; ++job)
      attention.run(call, job / call.num_kv_heads, job % call.num_kv_heads);
  };
  std::vector<std::jthread> helpers;
  for (int64_t t = 1; t < threads; ++t) helpers.emplace_back(share, t);
  share(0);
  return 0;  // jthreads join here
}
