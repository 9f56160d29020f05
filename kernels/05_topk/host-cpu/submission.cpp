// Top-k of every row at the speed of memory. See README.md for the idea and the figures.
//
// inputs   x        fp32 (batch, n)
// outputs  values   fp32 (batch, k), descending
//          indices  int64 (batch, k), x[indices] == values
#include <kbh/host.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <kbh/crew.hpp>

#include "selector.hpp"

namespace {

using topk::Key;
using topk::kSegment;
using topk::Selector;

struct Call {
  int64_t batch, n, k;
  const float* x;
  float* values;
  int64_t* indices;
};

/// The best of a part of a row, from a member that did not get the whole row.
struct Part {
  int64_t row;
  std::vector<Key> keys;
};

/// What one thread works with.
struct Member {
  explicit Member(int64_t k) : selector(k) {}
  Selector selector;
  std::vector<Part> parts;
};

/// Segments of all rows, handed out in runs: long ones first, so that each thread reads long stretches of memory; short
/// ones last, so that all end together.
class Segments {
 public:
  void reset(int64_t count, int64_t members) {
    next_.store(0, std::memory_order_relaxed);
    count_ = count;
    members_ = members;
  }

  /// [first, last); empty when nothing is left.
  struct Run {
    int64_t first, last;
  };
  Run take() {
    int64_t first = next_.load(std::memory_order_relaxed);
    for (;;) {
      if (first >= count_) return {count_, count_};
      const int64_t length = std::max<int64_t>(1, (count_ - first) / (2 * members_));
      if (next_.compare_exchange_weak(first, first + length, std::memory_order_relaxed)) return {first, first + length};
    }
  }

 private:
  alignas(64) std::atomic<int64_t> next_{0};
  int64_t count_ = 0;
  int64_t members_ = 1;
};

class TopK {
 public:
  TopK(int threads, int64_t k) : merger_(k), crew_(threads, [this](int member) { work(*members_[member]); }) {
    for (int i = 0; i < threads; ++i) members_.push_back(std::make_unique<Member>(k));
  }

  void run(const Call& call) {
    call_ = call;
    per_row_ = (call.n + kSegment - 1) / kSegment;
    const int64_t bytes = call.batch * call.n * int64_t{sizeof(float)};
    const int helpers = static_cast<int>(std::min<int64_t>(bytes / kBytesPerHelper, crew_.members() - 1));
    segments_.reset(call.batch * per_row_, helpers + 1);
    crew_.run(helpers);
    merge();
  }

 private:
  // A helper starts 45 to 130 us after the call on a virtual machine; one thread reads 2 MiB in about 100 us.
  static constexpr int64_t kBytesPerHelper = 2 << 20;

  /// Scans runs of segments until none is left.
  void work(Member& member) {
    int64_t row = -1, fed = 0;  // the row in the selector and the number of its segments scanned
    for (auto run = segments_.take(); run.first < run.last; run = segments_.take()) {
      const float* run_end = start_of(run.last);
      for (int64_t segment = run.first; segment < run.last; ++segment, ++fed) {
        if (segment / per_row_ != row) {
          finish(member, row, fed);
          row = segment / per_row_;
          fed = 0;
        }
        const int64_t first = segment % per_row_ * kSegment;
        member.selector.scan(start_of(segment), std::min(kSegment, call_.n - first), first, run_end);
      }
    }
    finish(member, row, fed);
  }

  const float* start_of(int64_t segment) const {
    return call_.x + segment / per_row_ * call_.n + segment % per_row_ * kSegment;
  }

  /// Writes a row that this member scanned alone, keeps its part of one that it shared; empties the selector.
  void finish(Member& member, int64_t row, int64_t fed) {
    if (fed == 0) return;
    if (fed == per_row_) {
      member.selector.write(call_.values + row * call_.k, call_.indices + row * call_.k);
    } else {
      const auto best = member.selector.best();
      member.parts.push_back({row, {best.begin(), best.end()}});
    }
    member.selector.reset();
  }

  /// Rows that several members shared.
  void merge() {
    std::vector<const Part*> parts;
    for (const auto& member : members_)
      for (const Part& part : member->parts) parts.push_back(&part);
    std::sort(parts.begin(), parts.end(), [](const Part* a, const Part* b) { return a->row < b->row; });
    for (size_t i = 0; i < parts.size();) {
      const int64_t row = parts[i]->row;
      for (; i < parts.size() && parts[i]->row == row; ++i)
        for (const Key key : parts[i]->keys) merger_.add(key);
      merger_.write(call_.values + row * call_.k, call_.indices + row * call_.k);
      merger_.reset();
    }
    for (const auto& member : members_) member->parts.clear();
  }

  Call call_{};
  int64_t per_row_ = 1;  // segments of a row
  Segments segments_;
  std::vector<std::unique_ptr<Member>> members_;
  Selector merger_;
  kbh::host::Crew crew_;  // last: its threads are gone before the rest is
};

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new TopK(std::max(1, context->threads), kbh::host::dim(*context, "k", 1));
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<TopK*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  static_cast<TopK*>(self)->run({inputs[0].shape[0], inputs[0].shape[1], outputs[0].shape[1],
                                 static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
                                 static_cast<int64_t*>(outputs[1].data)});
  return 0;
}
