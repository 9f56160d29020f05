// How the data of each case are drawn. distributions.cpp: what values there are; arrangements.cpp: where the winners
// stand; changes.cpp: what changes between two calls on the same buffers. Every random choice comes from a secret
// stream.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "problem/draw.hpp"
#include "problems/05_topk/topk.hpp"

namespace kbh::topk {

/// The tensor x of one draw.
struct Data {
  const DrawKey& key;
  Sizes size;
  std::span<float> x;

  Data(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw), size(draw.shape), x(tensors[0].as<float>()) {}

  [[nodiscard]] std::span<float> row(std::int64_t r) const { return row_of(x, r, size.n); }
  /// The stream of the values, or of something else that the case draws (positions, scales).
  [[nodiscard]] std::uint64_t stream(std::string_view purpose = "") const {
    return key.stream(purpose.empty() ? "x" : "x/" + std::string(purpose));
  }
  [[nodiscard]] Random random(std::string_view purpose) const { return Random(stream(purpose)); }
};

/// `count` different positions of [0, n), in random order.
std::vector<std::int64_t> random_positions(Random& random, std::int64_t n, std::int64_t count);

// distributions.cpp
void nominal(const Data& data);
void scaled(const Data& data, float scale);
void random_scale(const Data& data);
void mixed_rows(const Data& data);
void prefix(const Data& data, float prefix_scale, float rest_scale);
void all_equal(const Data& data);
void all_negative(const Data& data);
void heavy_tails(const Data& data);
void uniform(const Data& data);
void four_values(const Data& data);
void narrow(const Data& data);
void denormals(const Data& data);
void signed_zeros(const Data& data);
/// All elements of a row share their `bits` highest bits.
void shared_bits(const Data& data, int bits);

// arrangements.cpp
void ascending(const Data& data);
void descending(const Data& data);
void infinity_once(const Data& data);
void many_infinities(const Data& data);
void half_minus_infinity(const Data& data);
void mostly_minus_infinity(const Data& data);
void one_tile(const Data& data);
/// The public property case: a plateau of `quarters` / 4 and k + extra spikes in one partition of 1024.
struct Cluster {
  std::int64_t partition;
  std::int64_t offset;
  std::int64_t extra;
  std::int64_t quarters;
};
void cluster(const Data& data, const Cluster& where);
void random_cluster(const Data& data);
void canonical_cluster(const Data& data);
void one_lane(const Data& data, std::int64_t stride);
void slice_ties(const Data& data);
void tile_edges(const Data& data);
void kth_tie(const Data& data);
void low_then_high(const Data& data);
void small_then_large(const Data& data);
void first_wins(const Data& data);
void last_wins(const Data& data);

// changes.cpp
void raise_some(const Data& data);
void lower_winners(const Data& data);

}  // namespace kbh::topk
