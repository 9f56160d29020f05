// Paged attention, one decode step, at the speed of memory. See README.md for the idea and the figures.
//
// inputs   query        bf16  (batch, num_heads, head_dim)
//          kv_cache     bf16  (total_pages, page_size, num_kv_heads, 2 * head_dim), [K | V]
//          block_table  int32 (batch, pages_per_seq)
//          seq_lens     int32 (batch)
// outputs  out          bf16  (batch, num_heads, head_dim)
#include <kbh/host.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <kbh/crew.hpp>
#include <kbh/numbers.hpp>

#include "tile.hpp"

namespace {

using paged::kQuad;
using paged::kTile;
using paged::State;

struct Call {
  int64_t batch, num_heads, num_kv_heads, width, page_size, pages_per_seq;
  const uint16_t* query;
  const uint16_t* kv_cache;
  const int32_t* block_table;
  const int32_t* seq_lens;
  uint16_t* out;

  int64_t group() const { return num_heads / num_kv_heads; }
  int64_t quads() const { return (group() + kQuad - 1) / kQuad; }
  int64_t token_stride() const { return num_kv_heads * 2 * width; }
  int64_t page_elements() const { return page_size * token_stride(); }
  int64_t pages_of(int64_t sequence) const { return (seq_lens[sequence] + page_size - 1) / page_size; }
};

/// Pages of all sequences, one after the other, handed out in runs: long ones first, short ones last, so that all end
/// together.
class Pages {
 public:
  void reset(const Call& call, int64_t members) {
    first_.assign(1, 0);
    for (int64_t b = 0; b < call.batch; ++b) first_.push_back(first_.back() + call.pages_of(b));
    next_.store(0, std::memory_order_relaxed);
    members_ = members;
  }

  int64_t count() const { return first_.back(); }
  int64_t first_of(int64_t sequence) const { return first_[sequence]; }
  int64_t sequence_of(int64_t page) const {
    return std::upper_bound(first_.begin(), first_.end(), page) - first_.begin() - 1;
  }

  /// [first, last); empty when nothing is left.
  struct Run {
    int64_t first, last;
  };
  Run take() {
    int64_t first = next_.load(std::memory_order_relaxed);
    for (;;) {
      if (first >= count()) return {count(), count()};
      const int64_t length = std::min(count() - first, std::max(kShortest, (count() - first) / (2 * members_)));
      if (next_.compare_exchange_weak(first, first + length, std::memory_order_relaxed)) return {first, first + length};
    }
  }

 private:
  static constexpr int64_t kShortest = 4;
  alignas(64) std::atomic<int64_t> next_{0};
  std::vector<int64_t> first_;  // of each sequence, and the end
  int64_t members_ = 1;
};

/// Part of a sequence: states (num_kv_heads, quads).
struct Part {
  int64_t sequence;
  std::vector<State> states;
};

class PagedAttention {
 public:
  explicit PagedAttention(int threads)
      : members_(threads), crew_(threads, [this](int member) { work(members_[member]); }) {}

  void run(const Call& call) {
    call_ = call;
    int64_t tokens = 0;
    for (int64_t b = 0; b < call.batch; ++b) tokens += call.seq_lens[b];
    const int64_t bytes = tokens * call.token_stride() * int64_t{sizeof(uint16_t)};
    const int helpers = static_cast<int>(std::min<int64_t>(bytes / kBytesPerHelper, crew_.members() - 1));
    pages_.reset(call, helpers + 1);
    crew_.run(helpers);
    merge();
  }

 private:
  // A helper starts 45 to 130 us after the call on a virtual machine; one thread reads 2 MiB in about 100 us.
  static constexpr int64_t kBytesPerHelper = 2 << 20;

  /// What one thread works with. States and queries belong to the sequence at hand.
  struct Member {
    std::vector<State> states;
    std::vector<uint16_t> queries;  // (num_kv_heads, quads, 4, width): heads go in fours, zeros make up the last four
    std::vector<Part> parts;
  };

  /// The next run is taken before its turn, so that its first page can be fetched while the last one of this run is
  /// worked on.
  void work(Member& member) {
    for (Pages::Run run = pages_.take(), next; run.first < run.last; run = next) {
      next = pages_.take();
      const int64_t after = next.first < next.last ? next.first : run.last - 1;
      for (int64_t page = run.first; page < run.last;) {
        const int64_t sequence = pages_.sequence_of(page);
        const int64_t last = std::min(run.last, pages_.first_of(sequence + 1));
        const bool whole = last - page == call_.pages_of(sequence);
        begin(member, sequence);
        for (; page < last; ++page) attend_page(member, sequence, page, page + 1 < run.last ? page + 1 : after);
        if (whole)
          write(sequence, member.states.data());
        else
          member.parts.push_back({sequence, member.states});
      }
    }
  }

  void begin(Member& member, int64_t sequence) const {
    member.states.assign(call_.num_kv_heads * call_.quads(), State());
    member.queries.assign(call_.num_kv_heads * call_.quads() * kQuad * call_.width, 0);
    for (int64_t kv_head = 0; kv_head < call_.num_kv_heads; ++kv_head)
      std::copy_n(call_.query + (sequence * call_.num_heads + kv_head * call_.group()) * call_.width,
                  call_.group() * call_.width, &member.queries[kv_head * call_.quads() * kQuad * call_.width]);
  }

  const uint16_t* page_at(int64_t page) const {
    const int64_t sequence = pages_.sequence_of(page);
    const int64_t number = page - pages_.first_of(sequence);
    return call_.kv_cache + call_.block_table[sequence * call_.pages_per_seq + number] * call_.page_elements();
  }

  /// One page, all heads of the cache: it is one stretch of memory. While it is worked on, the next one is fetched in
  /// the order of its addresses: hardware prefetchers cannot follow a block table.
  void attend_page(Member& member, int64_t sequence, int64_t number, int64_t next_number) const {
    const uint16_t* page = page_at(number);
    const uint16_t* next_page = page_at(next_number);
    const int64_t before = (number - pages_.first_of(sequence)) * call_.page_size;
    const int64_t tokens = std::min(call_.page_size, call_.seq_lens[sequence] - before);
    const float scale = static_cast<float>(M_LOG2E) / std::sqrt(static_cast<float>(call_.width));
    const int64_t row = 2 * call_.width;
    const int64_t stream = call_.page_elements() / paged::kStreams;
    const uint16_t* ahead = next_page;
    for (int64_t t = 0; t < tokens; t += kTile)
      for (int64_t kv_head = 0; kv_head < call_.num_kv_heads; ++kv_head, ahead += kTile * row / paged::kStreams) {
        const uint16_t* rows = page + t * call_.token_stride() + kv_head * row;
        const uint16_t* next = kv_head + 1 < call_.num_kv_heads ? rows + row : next_page;
        const paged::Tile tile{rows, call_.token_stride(), std::min(kTile, tokens - t), next, ahead, stream};
        const int64_t quad = kv_head * call_.quads();
        const uint16_t* q = &member.queries[quad * kQuad * call_.width];
        if (call_.width == 128)
          paged::attend_tile<128>(tile, q, scale, &member.states[quad], call_.quads());
        else
          paged::attend_tile<64>(tile, q, scale, &member.states[quad], call_.quads());
      }
  }

  void write(int64_t sequence, const State* states) const {
    for (int64_t h = 0; h < call_.num_heads; ++h) {
      const int64_t in_group = h % call_.group();
      const State& state = states[h / call_.group() * call_.quads() + in_group / kQuad];
      const int64_t head = in_group % kQuad;
      const float total = state.total(head);
      uint16_t* out = call_.out + (sequence * call_.num_heads + h) * call_.width;
      for (int64_t d = 0; d < call_.width; ++d) out[d] = kbh::to_bf16(state.sums[head][paged::place_of(d)] / total);
    }
  }

  /// Sequences that went in parts to several runs.
  void merge() {
    std::vector<Part*> parts;
    for (Member& member : members_)
      for (Part& part : member.parts) parts.push_back(&part);
    std::sort(parts.begin(), parts.end(), [](const Part* a, const Part* b) { return a->sequence < b->sequence; });
    for (size_t i = 0; i < parts.size();) {
      Part& whole = *parts[i];
      for (++i; i < parts.size() && parts[i]->sequence == whole.sequence; ++i)
        for (size_t quad = 0; quad < whole.states.size(); ++quad) whole.states[quad].merge(parts[i]->states[quad]);
      write(whole.sequence, whole.states.data());
    }
    for (Member& member : members_) member.parts.clear();
  }

  Call call_{};
  Pages pages_;
  std::vector<Member> members_;
  kbh::host::Crew crew_;  // last: its threads are gone before the rest is
};

}  // namespace

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new PagedAttention(std::max(1, context->threads));
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<PagedAttention*>(self); }

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  static_cast<PagedAttention*>(self)->run({.batch = inputs[0].shape[0],
                                           .num_heads = inputs[0].shape[1],
                                           .num_kv_heads = inputs[1].shape[2],
                                           .width = inputs[0].shape[2],
                                           .page_size = inputs[1].shape[1],
                                           .pages_per_seq = inputs[2].shape[1],
                                           .query = static_cast<const uint16_t*>(inputs[0].data),
                                           .kv_cache = static_cast<const uint16_t*>(inputs[1].data),
                                           .block_table = static_cast<const int32_t*>(inputs[2].data),
                                           .seq_lens = static_cast<const int32_t*>(inputs[3].data),
                                           .out = static_cast<uint16_t*>(outputs[0].data)});
  return 0;
}
