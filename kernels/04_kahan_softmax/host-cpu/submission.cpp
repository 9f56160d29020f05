// Softmax of every row at the speed of memory, with compensated sums. See README.md for the idea and the figures.
//
// inputs   x  fp32 (batch, vocab)
// outputs  y  fp32 (batch, vocab)
#include <kbh/host.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "crew.hpp"
#include "simd.hpp"

namespace {

using softmax::Part;

constexpr int64_t kSegment = 4096;  // floats: logits and terms of one segment fit into 32 KiB of first-level cache

struct Call {
  int64_t batch, n;
  const float* x;
  float* y;
};

/// Floats that begin on a cache line.
class Scratch {
 public:
  explicit Scratch(int64_t floats) : data_(new(std::align_val_t{64}) float[static_cast<size_t>(floats)]) {}
  [[nodiscard]] float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* data) const { ::operator delete[](data, std::align_val_t{64}); }
  };
  std::unique_ptr<float[], Free> data_;
};

/// The whole row's largest logit, and the reciprocal of its sum times the two scales that terms and factors have.
struct Total {
  double largest;
  float inverse;

  explicit Total(const Part* parts, int64_t count) : largest(parts[0].largest) {
    for (int64_t p = 1; p < count; ++p) largest = std::max<double>(largest, parts[p].largest);
    double sum = 0;
    for (int64_t p = 0; p < count; ++p) sum += parts[p].sum * std::exp(parts[p].largest - largest);
    inverse = static_cast<float>(1 / (sum * double{softmax::kTermScale}));
  }
  /// What the terms of a segment with that largest logit lack.
  [[nodiscard]] float factor(float of_segment) const {
    return static_cast<float>(std::exp(of_segment - largest) * double{softmax::kTermScale});
  }
};

class Softmax {
 public:
  Softmax(int threads, int64_t batch, int64_t n)
      : per_row_((n + kSegment - 1) / kSegment),
        split_(batch < 2 * threads && per_row_ > 1 && threads > 1),
        parts_(static_cast<size_t>(batch * per_row_)),
        crew_(threads, [this](int member) { work(member); }) {
    const int64_t room = per_row_ * kSegment;
    for (int64_t i = 0; i < (split_ ? batch : threads); ++i) terms_.emplace_back(room);
  }

  void run(const Call& call) {
    call_ = call;
    const int64_t bytes = 2 * call.batch * call.n * int64_t{sizeof(float)};
    const int helpers = static_cast<int>(std::min<int64_t>(bytes / kBytesPerHelper, crew_.members() - 1));
    for (phase_ = split_ ? Phase::terms : Phase::rows; phase_ != Phase::done; phase_ = after(phase_)) {
      next_.store(0, std::memory_order_relaxed);
      crew_.run(helpers);
    }
  }

 private:
  // A helper starts 45 to 130 us after the call on a virtual machine; one thread moves 1 MiB in about 60 us.
  static constexpr int64_t kBytesPerHelper = 1 << 20;

  /// Where there are rows enough, each is the work of one thread. Where there are few, all threads compute terms of
  /// segments, and when all are done, all write them.
  enum class Phase { rows, terms, outputs, done };
  static Phase after(Phase phase) { return phase == Phase::terms ? Phase::outputs : Phase::done; }

  void work(int member) {
    const int64_t pieces = phase_ == Phase::rows ? call_.batch : call_.batch * per_row_;
    for (int64_t i = take(); i < pieces; i = take()) {
      switch (phase_) {
        case Phase::rows:
          whole_row(i, terms_[static_cast<size_t>(member)].data());
          break;
        case Phase::terms:
          terms(i / per_row_, i % per_row_, terms_of_row(i / per_row_));
          break;
        case Phase::outputs:
          outputs(i / per_row_, i % per_row_, terms_of_row(i / per_row_));
          break;
        case Phase::done:
          return;
      }
    }
    softmax::end_stream();
  }

  int64_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  void whole_row(int64_t row, float* e) {
    for (int64_t s = 0; s < per_row_; ++s) terms(row, s, e);
    const Total total(parts(row), per_row_);
    for (int64_t s = 0; s < per_row_; ++s) write(row, s, e, total);
  }

  void outputs(int64_t row, int64_t s, const float* e) { write(row, s, e, Total(parts(row), per_row_)); }

  /// Segment s of a row: into row's place of `e`, and into its part.
  void terms(int64_t row, int64_t s, float* e) {
    const int64_t first = s * kSegment, length = std::min(kSegment, call_.n - first);
    const float* x = call_.x + row * call_.n + first;
    parts(row)[s] = softmax::terms_of(x, length, e + first, x + kSegment);
  }

  void write(int64_t row, int64_t s, const float* e, const Total& total) const {
    const int64_t first = s * kSegment, length = std::min(kSegment, call_.n - first);
    const float factor = total.factor(parts_[static_cast<size_t>(row * per_row_ + s)].largest);
    softmax::write_scaled(e + first, length, factor, total.inverse, call_.y + row * call_.n + first);
  }

  Part* parts(int64_t row) { return &parts_[static_cast<size_t>(row * per_row_)]; }
  float* terms_of_row(int64_t row) const { return terms_[static_cast<size_t>(row)].data(); }

  Call call_{};
  const int64_t per_row_;  // segments of a row
  const bool split_;       // rows are shared by threads
  Phase phase_ = Phase::done;
  std::vector<Part> parts_;
  std::vector<Scratch> terms_;  // of a row: one for each member, or one for each row where rows are split
  alignas(64) std::atomic<int64_t> next_{0};
  softmax::Crew crew_;  // last: its threads are gone before the rest is
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
