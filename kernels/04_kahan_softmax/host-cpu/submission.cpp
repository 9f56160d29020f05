// Softmax of every row at the speed of memory, with compensated sums. See README.md for the idea and the figures.
//
// inputs   x  fp32 (batch, vocab)
// outputs  y  fp32 (batch, vocab)
#include <kbh/host.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <kbh/crew.hpp>

#include "simd.hpp"

namespace {

using softmax::Part;

constexpr int64_t kSegment = 4096;  // floats: 16 KiB, read three times out of the first-level cache

struct Call {
  int64_t batch, n;
  const float* x;
  float* y;
};

/// The whole row's largest logit, and the reciprocal of its sum.
struct Total {
  float largest;
  float inverse;

  Total(const Part* parts, int64_t count) : largest(parts[0].largest) {
    for (int64_t p = 1; p < count; ++p) largest = std::max(largest, parts[p].largest);
    double sum = 0;
    for (int64_t p = 0; p < count; ++p)
      sum += parts[p].sum * std::exp(static_cast<double>(parts[p].largest) - static_cast<double>(largest));
    inverse = static_cast<float>(softmax::kTermScale / sum);
  }
};

class Softmax {
 public:
  Softmax(int threads, int64_t batch, int64_t n)
      : per_row_((n + kSegment - 1) / kSegment),
        split_(batch < 2 * threads && per_row_ > 1 && threads > 1),
        parts_(static_cast<size_t>(batch * per_row_)),
        crew_(threads, [this](int) { work(); }) {}

  void run(const Call& call) {
    call_ = call;
    for (std::atomic<int64_t>* counter : {&next_row_, &next_sum_, &summed_, &next_output_}) counter->store(0);
    const int64_t bytes = 2 * call.batch * call.n * int64_t{sizeof(float)};
    helpers_ = static_cast<int>(std::min<int64_t>(bytes / kBytesPerHelper, crew_.members() - 1));
    crew_.run(helpers_);
  }

 private:
  // A helper starts 45 to 130 us after the call on a virtual machine; one thread moves 1 MiB in about 70 us.
  static constexpr int64_t kBytesPerHelper = 1 << 20;

  /// Where there are rows enough, each is the work of one thread. Where there are few, all threads sum segments, and
  /// when all are summed, all write them.
  void work() {
    if (split_) {
      const int64_t segments = call_.batch * per_row_;
      share(next_sum_, segments, [&](int64_t i) {
        sum(i / per_row_, i % per_row_);
        summed_.fetch_add(1, std::memory_order_release);
      });
      while (summed_.load(std::memory_order_acquire) < segments) std::this_thread::yield();
      share(next_output_, segments, [&](int64_t i) { write(i / per_row_, i % per_row_, total(i / per_row_)); });
    } else {
      share(next_row_, call_.batch, [&](int64_t row) { whole_row(row); });
    }
    softmax::end_stream();
  }

  /// Takes runs of pieces until none is left: long ones first, for what a thread reads ahead should be its own; single
  /// ones last, so that all end together.
  void share(std::atomic<int64_t>& next, int64_t pieces, const auto& job) const {
    for (int64_t first = next.load(std::memory_order_relaxed); first < pieces;) {
      const int64_t length = std::max<int64_t>(1, (pieces - first) / (2 * (helpers_ + 1)));
      if (!next.compare_exchange_weak(first, first + length, std::memory_order_relaxed)) continue;
      for (int64_t i = first; i < first + length; ++i) job(i);
      first = next.load(std::memory_order_relaxed);
    }
  }

  void whole_row(int64_t row) {
    for (int64_t s = 0; s < per_row_; ++s) sum(row, s);
    const Total of_row = total(row);
    for (int64_t s = 0; s < per_row_; ++s) write(row, s, of_row);
  }

  void sum(int64_t row, int64_t s) {
    const float* x = call_.x + place(row, s);
    parts_[static_cast<size_t>(row * per_row_ + s)] = softmax::part_of(x, length(s), x + kSegment);
  }

  void write(int64_t row, int64_t s, const Total& of_row) const {
    const int64_t at = place(row, s);
    softmax::write_outputs(call_.x + at, length(s), of_row.largest, of_row.inverse, call_.y + at);
  }

  Total total(int64_t row) const { return {&parts_[static_cast<size_t>(row * per_row_)], per_row_}; }
  int64_t place(int64_t row, int64_t s) const { return row * call_.n + s * kSegment; }
  int64_t length(int64_t s) const { return std::min(kSegment, call_.n - s * kSegment); }

  Call call_{};
  const int64_t per_row_;  // segments of a row
  const bool split_;       // rows are shared by threads
  int helpers_ = 0;
  std::vector<Part> parts_;
  alignas(64) std::atomic<int64_t> next_row_{0};
  alignas(64) std::atomic<int64_t> next_sum_{0};
  alignas(64) std::atomic<int64_t> summed_{0};
  alignas(64) std::atomic<int64_t> next_output_{0};
  kbh::host::Crew crew_;  // last: its threads are gone before the rest is
};

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new Softmax(std::max(1, context->threads), kbh::host::dim(*context, "batch", 1),
                      kbh::host::dim(*context, "vocab", 1));
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<Softmax*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  static_cast<Softmax*>(self)->run({inputs[0].shape[0], inputs[0].shape[1], static_cast<const float*>(inputs[0].data),
                                    static_cast<float*>(outputs[0].data)});
  return 0;
}
