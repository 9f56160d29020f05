// How the data of each case are drawn. tables.cpp: lengths and block tables; values.cpp: queries and cache;
// refresh.cpp: what changes between two calls on the same buffers. Every random choice comes from a secret stream.
//
// The cache is large, so it is drawn by functors, element by element; what differs between sequences comes from small
// tables (one PageRule per page, one direction per head). Four neighbouring elements are one Quad: they share a draw.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kbh/numbers.hpp>

#include "problem/draw.hpp"
#include "problems/03_paged_attention/paged_attention.hpp"

namespace kbh::paged_attention {

struct Quad {
  std::uint16_t v[4];
};

/// One draw: its key, its sizes, its tensors.
struct Data {
  const DrawKey& key;
  Sizes size;
  MutableInputs in;

  Data(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw), size(draw.shape), in(mutable_inputs_of(tensors)) {}

  [[nodiscard]] std::uint64_t stream(std::string_view name) const { return key.stream(name); }
  [[nodiscard]] Random random(std::string_view name) const { return Random(stream(name)); }
  [[nodiscard]] std::int64_t length(std::int64_t sequence) const { return in.seq_lens[index(sequence)]; }
  /// The page of the sequence's tokens [number * page_size, ...).
  [[nodiscard]] std::int32_t& page(std::int64_t sequence, std::int64_t number) const {
    return in.block_table[index(sequence * size.pages_per_seq() + number)];
  }
  [[nodiscard]] std::span<std::uint16_t> query_row(std::int64_t sequence, std::int64_t head) const {
    return in.query.subspan(index((sequence * size.num_heads + head) * size.head_dim), index(size.head_dim));
  }
  /// [K | V] of a token.
  [[nodiscard]] std::span<std::uint16_t> cache_row(std::int64_t sequence, std::int64_t token,
                                                   std::int64_t kv_head) const {
    return in.cache.subspan(size.row(page(sequence, token / size.page_size), token % size.page_size, kv_head),
                            index(2 * size.head_dim));
  }
};

// ---- functors of fill_each

/// Normal values times `scale`; the first `front` quads times `front_scale` instead.
struct NormalBf16 {
  float scale;
  std::uint64_t front = 0;
  float front_scale = 1;

  KBH_HOST_DEVICE Quad operator()(philox::Words w, std::uint64_t i) const {
    const float factor = i < front ? front_scale : scale;
    Quad quad;
    for (int j = 0; j < 4; ++j) quad.v[j] = to_bf16(philox::mul(philox::normal(w.v[j]), factor));
    return quad;
  }
};

/// What is special about the slots of one page.
struct PageRule {
  std::int32_t valid = 0;   // slots that hold tokens of a sequence; the others may hold anything
  float value_scale = 1;    // V of valid slots, before the shifts
  float value_shift = 0;    // added to V of valid slots
  float last_shift = 0;     // added to V of the last valid slot
  float unused_value = 0;   // V of the other slots, where Unused::constant
  float key_shift = 0;      // times the direction, added to K of valid slots
  std::int32_t spike = -1;  // a slot whose K gets spike_shift times the direction
  float spike_shift = 0;
};

enum class Unused {
  drawn,     // like valid slots
  constant,  // V is PageRule::unused_value
  poison,    // NaN, infinities and the largest number, in K and V
};

/// The cache by page rules. K = key_scale * normal + shifts, V = value_scale * normal + shifts.
struct CacheBf16 {
  std::uint32_t kv_heads;
  std::uint32_t page_size;
  std::uint32_t half;         // quads of K, and of V, in a row
  const PageRule* pages;      // (total_pages)
  const float* directions;    // (kv_heads, head_dim), +-1
  const float* value_scales;  // (kv_heads), times the page's
  float key_scale;
  float value_scale;
  Unused unused;

  KBH_HOST_DEVICE Quad operator()(philox::Words w, std::uint64_t i) const {
    const auto quad_index = static_cast<std::uint32_t>(i);
    const std::uint32_t row = quad_index / (2 * half);
    const std::uint32_t column = quad_index % (2 * half);
    const std::uint32_t head = row % kv_heads;
    const auto slot = static_cast<std::int32_t>(row / kv_heads % page_size);
    const PageRule& page = pages[row / kv_heads / page_size];
    const bool valid = slot < page.valid;
    if (!valid && unused == Unused::poison) return poison(w);
    return column < half ? key(w, page, slot, directions + (head * half + column) * 4)
                         : value(w, page, slot, value_scales[head]);
  }

 private:
  KBH_HOST_DEVICE static Quad poison(philox::Words w) {
    Quad quad;
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t kind = w.v[j] >> 30;
      quad.v[j] = static_cast<std::uint16_t>(kind == 0 ? 0x7fc1u : kind == 1 ? 0x7f80u : kind == 2 ? 0xff80u : 0x7f7fu);
    }
    return quad;
  }

  KBH_HOST_DEVICE Quad key(philox::Words w, const PageRule& page, std::int32_t slot, const float* direction) const {
    const float along = slot == page.spike ? page.spike_shift : slot < page.valid ? page.key_shift : 0.0f;
    Quad quad;
    for (int j = 0; j < 4; ++j)
      quad.v[j] =
          to_bf16(philox::add(philox::mul(philox::normal(w.v[j]), key_scale), philox::mul(along, direction[j])));
    return quad;
  }

  KBH_HOST_DEVICE Quad value(philox::Words w, const PageRule& page, std::int32_t slot, float head_scale) const {
    Quad quad;
    if (slot >= page.valid && unused == Unused::constant) {
      for (std::uint16_t& element : quad.v) element = to_bf16(page.unused_value);
      return quad;
    }
    const float scale = philox::mul(value_scale, philox::mul(page.value_scale, head_scale));
    const float shift = slot >= page.valid       ? 0.0f
                        : slot == page.valid - 1 ? philox::add(page.value_shift, page.last_shift)
                                                 : page.value_shift;
    for (int j = 0; j < 4; ++j) quad.v[j] = to_bf16(philox::add(philox::mul(philox::normal(w.v[j]), scale), shift));
    return quad;
  }
};

/// Fills a bf16 tensor whose rows are multiples of four.
template <typename Draw>
void fill_quads(std::span<std::uint16_t> out, std::uint64_t stream, Draw draw) {
  fill_each(std::span(reinterpret_cast<Quad*>(out.data()), out.size() / 4), stream, draw);
}

// ---- tables.cpp: lengths

void full_lengths(const Data& data);
/// 1 .. seq_len, the longest seq_len; one sequence at least has a last page that is not full.
void ragged_lengths(const Data& data);
/// Around page edges: seq_len, seq_len - 1, - page_size and beside, 1, page_size and beside; the first never ends a
/// page.
void edge_lengths(const Data& data);
/// One sequence of seq_len, all others of two pages at most.
void one_long_length(const Data& data);
void lengths_of_one(const Data& data);
/// Upstream's property case.
struct PropertyLengths {
  std::int64_t divisor;
  std::int64_t tail;
  std::int64_t stride;
};
void property_lengths(const Data& data, const PropertyLengths& parameters);

// ---- tables.cpp: block tables. Entries beyond a sequence's pages name pages that belong to nobody.

/// A random permutation of all pages, as upstream's.
void random_table(const Data& data);
/// The same, but the first and the last page of the cache are in use.
void table_with_both_ends(const Data& data);
/// Every second sequence begins with full pages of the one before.
void shared_table(const Data& data);

/// Rules with `valid` filled in, from lengths and block table.
std::vector<PageRule> page_rules(const Data& data);

// ---- values.cpp: whole draws, tables included

void nominal(const Data& data);
void scaled(const Data& data, float scale);
void random_scale(const Data& data);
void prefix(const Data& data, float front_scale, float rest_scale);
void peaked(const Data& data);
void ragged(const Data& data);
void one_long(const Data& data);
void shared(const Data& data);
void both_ends(const Data& data);
void hot(const Data& data);
void ramp(const Data& data);
void poisoned(const Data& data);
void single_token(const Data& data);
void signs(const Data& data, const PropertyLengths& parameters);
void random_signs(const Data& data);
/// All scores lie about sign * 120.
void offset_scores(const Data& data, float sign);
void spike(const Data& data, bool at_end);
void mixed_sequences(const Data& data);
void mixed_heads(const Data& data);

// ---- refresh.cpp

constexpr int kInPlaceCalls = 5;
/// Nominal values with ragged lengths; then, in a secret order, one step each changes the cache, the queries, the block
/// table and the lengths: 1 to 7 elements, by so much that each changes a whole row of the answer.
void in_place(const Data& data);
void in_place_change(const Data& data, int step);

}  // namespace kbh::paged_attention
