#include <fmt/format.h>

#include "problems/05_topk/fills.hpp"

namespace kbh::topk {
namespace {

using Fill = std::function<void(const Data&)>;
using Applies = std::function<bool(const Sizes&)>;
using Names = std::vector<std::string>;

/// Adapts functions of Data to those of a Case.
std::function<void(const DrawKey&, std::span<const TensorView>)> on_tensors(Fill fill) {
  return
      [fill = std::move(fill)](const DrawKey& key, std::span<const TensorView> tensors) { fill(Data(key, tensors)); };
}

std::function<bool(const Shape&)> on_shape(Applies applies) {
  return [applies = std::move(applies)](const Shape& shape) { return applies(Sizes(shape)); };
}

bool always(const Sizes&) { return true; }

// fp32 outputs at upstream's default tolerance; its two stress cases relax the absolute one with the scale.
constexpr UpstreamTolerance kUpstream = {1e-4, 1e-4};
constexpr UpstreamTolerance kUpstreamTiny = {1e-7, 1e-4};
constexpr UpstreamTolerance kUpstreamLarge = {1e-1, 1e-4};

Case as_upstream(UpstreamTolerance tolerance, Case c) {
  c.upstream = tolerance;
  return c;
}

Case single(std::string name, std::string about, Applies applies, Fill fill, Names kills) {
  Case c;
  c.name = std::move(name);
  c.about = std::move(about);
  c.applies = on_shape(std::move(applies));
  c.bounds.exact = true;
  c.fill = on_tensors(std::move(fill));
  c.kills = std::move(kills);
  return c;
}

Case in_place(std::string name, std::string about, Fill change, Names kills) {
  Case c = single(std::move(name), std::move(about), always, nominal, std::move(kills));
  c.kind = CaseKind::repeated;
  c.change = [change = std::move(change)](const DrawKey& key, int, std::span<const TensorView> tensors,
                                          const Expected&) { change(Data(key, tensors)); };
  return c;
}

Applies n_above(std::int64_t least) {
  return [least](const Sizes& s) { return s.n > least; };
}
bool several_rows(const Sizes& s) { return s.batch >= 2; }
bool several_winners(const Sizes& s) { return s.k >= 2; }
bool some_lose(const Sizes& s) { return s.k < s.n; }

/// What values there are.
std::vector<Case> distribution_cases() {
  Case first = single("nominal", "standard normal: the public distribution, the one that is timed", always, nominal,
                      {"zeros", "constant", "copy_prefix", "permuted_rows", "flat_index", "index_from_one",
                       "repeats_best", "unsorted", "misses_one", "one_wrong", "stale", "unsigned_bits"});
  first.nominal = true;
  first.upstream = kUpstream;
  return {
      first,
      as_upstream(kUpstreamTiny,
                  single("tiny_scale", "normal x 1e-4 (public stress): absolute thresholds", always,
                         [](const Data& d) { scaled(d, 1e-4f); }, {"zeros", "one_wrong", "constant_threshold"})),
      as_upstream(kUpstreamLarge,
                  single("large_scale", "normal x 1e3 (public stress): absolute thresholds, fixed-point keys", always,
                         [](const Data& d) { scaled(d, 1e3f); }, {"one_wrong", "constant_threshold", "fixed_point"})),
      single("random_scale", "normal x a random scale in 2^-40..2^40: recognition of the public scales", always,
             random_scale, {"one_wrong", "public_scales"}),
      single("mixed_rows", "each row has a random amplitude: one threshold for all rows", several_rows, mixed_rows,
             {"row0_threshold", "permuted_rows", "fixed_point"}),
      single("prefix_nominal", "the first 64 KiB nominal, the rest x 8: a look at the first elements only", always,
             [](const Data& d) { prefix(d, 1, 8); }, {"prefix_range", "prefix_threshold"}),
      single("prefix_large", "the first 64 KiB x 8, the rest nominal: a look at the first elements only", always,
             [](const Data& d) { prefix(d, 8, 1); }, {"prefix_threshold"}),
      single("all_equal", "one value everywhere: every tie, every capacity", always, all_equal,
             {"zeros", "index_by_value", "gaussian_threshold", "repeats_best"}),
      single("all_negative", "no value above 0: lists that start at 0, integer compares of float bits", always,
             all_negative, {"zero_padding", "signed_bits", "constant_threshold"}),
      single("heavy_tails", "Cauchy: thresholds from the variance, fixed-point keys", always, heavy_tails,
             {"constant_threshold", "fixed_point"}),
      single("uniform", "uniform in [0, 1): thresholds from a Gaussian tail", always, uniform,
             {"gaussian_threshold", "constant_threshold"}),
      single("four_values", "four values: ties everywhere, each index once", always, four_values,
             {"one_wrong", "index_by_value"}),
      single("narrow", "1000 +- 0.01: keys of few bits", always, narrow, {"keys_16_bit", "bf16_values"}),
      single("denormals", "denormals only: compares that flush them to 0", always, denormals, {"flush_denormals"}),
      single("signed_zeros", "+0 and -0 mixed: equal values, but each has the bits of its index", always, signed_zeros,
             {"zeros", "canonical_zero"}),
      single("shared_12_bits", "elements of a row agree in their 12 highest bits", always,
             [](const Data& d) { shared_bits(d, 12); }, {"keys_16_bit"}),
      single("shared_16_bits", "elements of a row agree in their 16 highest bits: 16-bit keys, bf16", always,
             [](const Data& d) { shared_bits(d, 16); }, {"keys_16_bit", "bf16_values"}),
      single("shared_20_bits", "elements of a row agree in their 20 highest bits: 20-bit keys", always,
             [](const Data& d) { shared_bits(d, 20); }, {"keys_16_bit", "keys_20_bit"}),
      single("shared_24_bits", "elements of a row agree in their 24 highest bits: 256 values, many ties", always,
             [](const Data& d) { shared_bits(d, 24); }, {"one_wrong"}),
      single("infinity_once", "one +inf per row: filters for finite values", always, infinity_once, {"finite_only"}),
      single("many_infinities", "more than k times +inf: nothing else may be returned", always, many_infinities,
             {"finite_only", "index_by_value"}),
      single("half_minus_infinity", "half of the elements are -inf: sums and variances", always, half_minus_infinity,
             {"gaussian_threshold"}),
      single("mostly_minus_infinity", "fewer than k finite values: -inf is a value, not an empty place",
             several_winners, mostly_minus_infinity, {"minus_infinity_skipped"}),
  };
}

/// Where the winners stand.
std::vector<Case> arrangement_cases() {
  std::vector<Case> cases = {
      single("ascending", "sorted: every element passes a running threshold", always, ascending,
             {"running_list", "sampled_threshold"}),
      single("descending", "sorted: all winners at the front", always, descending, {"unsorted", "misses_one"}),
      single("one_tile", "k winners in one random tile of 1024: too few candidates per tile", n_above(1024), one_tile,
             {"tile_quarter"}),
      single("cluster", "k + 1..32 spikes in one partition over a plateau (public property case, random)", always,
             random_cluster, {"one_wrong", "tile_quarter"}),
      single("cluster_canonical", "k + 8 spikes in partition 3 over a plateau (public property case, fixed places)",
             always, canonical_cluster, {"one_wrong", "tile_quarter"}),
      single("slice_ties", "equal winners on both sides of slice edges: merges that drop or repeat a tie",
             n_above(2048), slice_ties, {"index_by_value"}),
      single("tile_edges", "winners at 0, n-1 and beside tile edges", always, tile_edges, {"tile_end_missed"}),
      single("kth_tie", "k-1 winners and a tie of n/2 at the k-th value: candidate lists that fill up", some_lose,
             kth_tie, {"capped_candidates"}),
      single("low_then_high", "n/2 low values, then n/2 high: thresholds from the front", n_above(2048), low_then_high,
             {"sampled_threshold"}),
      single("small_then_large", "1024 small values, then large: thresholds from the first tile", n_above(2048),
             small_then_large, {"sampled_threshold"}),
      single("first_wins", "all negative, the largest at index 0", always, first_wins,
             {"zero_padding", "first_skipped"}),
      single("last_wins", "all negative, the largest at index n-1: dropped tails", always, last_wins,
             {"zero_padding", "last_tile_dropped", "ragged_tail_dropped", "vector_tail_dropped"}),
  };
  for (const std::int64_t stride : {256, 512, 1024, 2048}) {
    Names kills = {"lane_best_2_of_256"};
    if (stride >= 1024) kills.insert(kills.end(), {"lane_best_1"});
    if (stride == 1024) kills.insert(kills.end(), {"lane_best_2", "lane_best_4"});
    cases.push_back(single(
        fmt::format("one_lane_{}", stride), fmt::format("winners at stride {}: too few candidates per thread", stride),
        n_above(6 * stride), [stride](const Data& d) { one_lane(d, stride); }, std::move(kills)));
  }
  return cases;
}

std::vector<Case> change_cases() {
  return {
      in_place("in_place_raise", "the same buffers, 1 to 7 random elements become winners: answers kept from before",
               raise_some, {"stale", "checked_memo"}),
      in_place("in_place_lower", "the same buffers, 1 to 7 winners drop out: answers kept from before", lower_winners,
               {"stale", "keeps_old_winners"}),
  };
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& group : {distribution_cases(), arrangement_cases(), change_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::topk
