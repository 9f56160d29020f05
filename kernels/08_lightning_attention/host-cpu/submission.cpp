// One decode step of lightning attention at the speed of memory. See README.md for the idea and the figures.
//
// inputs   q, k, v  bf16 (B, H, 128)
//          s        fp32 (B, H, 128, 128)
//          decay    fp32 (H)
// outputs  s_next   fp32 (B, H, 128, 128)   decay * s + k v^T
//          o        bf16 (B, H, 128)        q s_next
#include <kbh/host.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <kbh/crew.hpp>

#include "step.hpp"

namespace {

using lightning::kD;
using lightning::kMemory;

struct Call {
  int64_t heads, memories;
  const uint16_t *q, *k, *v;
  const float *s, *decay;
  float* s_next;
  uint16_t* o;
};

class LightningAttention {
 public:
  explicit LightningAttention(int threads) : crew_(threads, [this](int) { work(); }) {}

  void run(const Call& call) {
    call_ = call;
    next_.store(0, std::memory_order_relaxed);
    crew_.run(static_cast<int>(std::min<int64_t>(call.memories / kMemoriesPerHelper, crew_.members() - 1)));
  }

 private:
  // A helper starts 45 to 130 us after the call on a virtual machine; one thread needs as long for 16 memories.
  static constexpr int64_t kMemoriesPerHelper = 16;

  /// Takes runs of memories until none is left: long stretches first, single ones last, so that all end together.
  void work() {
    int64_t first = next_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t left = call_.memories - first;
      if (left <= 0) break;
      const int64_t count = std::max<int64_t>(1, left / (2 * crew_.members()));
      if (!next_.compare_exchange_weak(first, first + count, std::memory_order_relaxed)) continue;
      for (int64_t m = first; m < first + count; ++m) step(m);
      first = next_.load(std::memory_order_relaxed);
    }
    lightning::finish_streaming();
  }

  void step(int64_t m) const {
    lightning::step(call_.q + m * kD, call_.k + m * kD, call_.v + m * kD, call_.s + m * kMemory,
                    call_.decay[m % call_.heads], call_.s_next + m * kMemory, call_.o + m * kD);
  }

  Call call_{};
  alignas(64) std::atomic<int64_t> next_{0};
  kbh::host::Crew crew_;  // last: its threads are gone before the rest is
};

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new LightningAttention(std::max(1, context->threads));
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<LightningAttention*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  Call call;
  call.heads = inputs[0].shape[1];
  call.memories = inputs[0].shape[0] * call.heads;
  call.q = static_cast<const uint16_t*>(inputs[0].data);
  call.k = static_cast<const uint16_t*>(inputs[1].data);
  call.v = static_cast<const uint16_t*>(inputs[2].data);
  call.s = static_cast<const float*>(inputs[3].data);
  call.decay = static_cast<const float*>(inputs[4].data);
  call.s_next = static_cast<float*>(outputs[0].data);
  call.o = static_cast<uint16_t*>(outputs[1].data);
  static_cast<LightningAttention*>(self)->run(call);
  return 0;
}
