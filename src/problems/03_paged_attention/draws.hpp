// How the data of each case are drawn. tables.cpp: lengths and block tables; values.cpp: queries and cache;
// refresh.cpp: what changes between two calls on the same buffers. Every random choice comes from a secret stream.
//
// The cache is large, so it is drawn by functors, element by element; what differs between sequences comes from small
// tables (one PageRule per page, one direction per head). An element is shaped from one normal number: a device calls
// the functor itself, the CPU draws runs of normal numbers (twice as fast) and shapes them row by row; the bits
// are equal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kbh/numbers.hpp>

#include "problem/draw.hpp"
#include "problems/03_paged_attention/paged_attention.hpp"

namespace kbh::paged_attention {

/// One draw: its key, its sizes, its tensors.
struct Data {
  DrawKey key;
  Sizes size;
  MutableInputs in;

  Data(DrawKey draw, std::span<const TensorView> tensors)
      : key(std::move(draw)), size(key.shape), in(mutable_inputs_of(tensors)) {}

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

// ---- functors

/// Normal values times `scale`; the first `front` elements times `front_scale` instead.
struct NormalBf16 {
  float scale = 1;
  std::uint64_t front = 0;
  float front_scale = 1;

  KBH_HOST_DEVICE std::uint16_t shaped(std::uint64_t i, float z) const {
    return to_bf16(philox::mul(z, i < front ? front_scale : scale));
  }
  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    return shaped(i, philox::normal(w.v[0]));
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
  std::uint32_t head_dim;
  const PageRule* pages;      // (total_pages)
  const float* directions;    // (kv_heads, head_dim), +-1
  const float* value_scales;  // (kv_heads), times the page's
  float key_scale;
  float value_scale;
  Unused unused;

  /// What the elements [K | V] of one token and head have in common.
  struct Row {
    const float* direction;
    float along;
    float scale;
    float shift;
    bool poisoned;
  };

  KBH_HOST_DEVICE Row row(std::uint32_t number) const {
    const std::uint32_t head = number % kv_heads;
    const auto slot = static_cast<std::int32_t>(number / kv_heads % page_size);
    const PageRule& page = pages[number / kv_heads / page_size];
    const bool valid = slot < page.valid;
    Row row{directions + head * head_dim, 0,
            philox::mul(value_scale, philox::mul(page.value_scale, value_scales[head])), 0,
            !valid && unused == Unused::poison};
    if (valid) {
      row.along = slot == page.spike ? page.spike_shift : page.key_shift;
      row.shift = slot == page.valid - 1 ? philox::add(page.value_shift, page.last_shift) : page.value_shift;
    } else if (unused == Unused::constant) {
      row.scale = 0;
      row.shift = page.unused_value;
    }
    return row;
  }

  KBH_HOST_DEVICE std::uint16_t key(const Row& row, std::uint32_t d, float z) const {
    return to_bf16(philox::add(philox::mul(z, key_scale), philox::mul(row.along, row.direction[d])));
  }
  KBH_HOST_DEVICE static std::uint16_t value(const Row& row, float z) {
    return to_bf16(philox::add(philox::mul(z, row.scale), row.shift));
  }
  KBH_HOST_DEVICE static std::uint16_t poison(float z) {
    const std::uint32_t kind = philox::to_bits(z) & 3u;
    return static_cast<std::uint16_t>(kind == 0 ? 0x7fc1u : kind == 1 ? 0x7f80u : kind == 2 ? 0xff80u : 0x7f7fu);
  }

  KBH_HOST_DEVICE std::uint16_t operator()(philox::Words w, std::uint64_t i) const {
    const float z = philox::normal(w.v[0]);
    const Row of = row(static_cast<std::uint32_t>(i / (2 * head_dim)));
    const auto column = static_cast<std::uint32_t>(i % (2 * head_dim));
    if (of.poisoned) return poison(z);
    return column < head_dim ? key(of, column, z) : value(of, z);
  }
};

// values.cpp: what fill_each(out, stream, draw) gives, faster.
void fill_normal_bf16(std::span<std::uint16_t> out, std::uint64_t stream, const NormalBf16& draw);
void fill_cache_bf16(std::span<std::uint16_t> out, std::uint64_t stream, const CacheBf16& draw);

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
