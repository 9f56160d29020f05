#include <algorithm>

#include "problems/01_fp8_gemm/fills.hpp"

namespace kbh::fp8_gemm {
namespace {

using Names = std::vector<std::string>;
using FillState = std::function<void(const StateDraw&)>;
using FillInput = std::function<void(const InputDraw&)>;

// The bounds that a case shows; compare.cpp takes those of the shape's own K.
Sizes usual_size() { return Sizes({{{"M", 4096}, {"N", 4096}, {"K", 4096}}}); }

Case make(std::string name, std::string about, FillState fill_state, FillInput fill, Names kills) {
  Case c;
  c.name = std::move(name);
  c.about = std::move(about);
  c.fill_state = [fill_state = std::move(fill_state)](const DrawKey& key, std::span<const TensorView> state) {
    fill_state(StateDraw(key, state));
  };
  c.fill = [fill = std::move(fill)](const DrawKey& key, std::span<const TensorView> tensors) {
    fill(InputDraw(key, tensors));
  };
  c.bounds = zero_mean_bounds(usual_size());
  c.kills = std::move(kills);
  return c;
}

Case as_upstream(UpstreamTolerance tolerance, Case c) {
  c.upstream = tolerance;
  return c;
}

Case exact(Case c) {
  c.bounds = {.exact = true};
  return c;
}

/// Where a few rows or columns carry the norm of the tensor, and may all be small by chance, each element's own bound
/// is what counts.
Case by_element(Case c) {
  c.bounds.frobenius = 0;
  return c;
}

Case on_several_rows(Case c) {
  c.applies = [](const Shape& shape) { return Sizes(shape).m > 1; };
  return c;
}

FillInput scaled_by(float scale) {
  return [scale](const InputDraw& draw) { scaled_x(draw, scale); };
}

/// Tiles of 128 rows; of an eighth of the rows where there are fewer than eight such tiles.
std::int64_t tile_rows(const Sizes& size) { return std::clamp<std::int64_t>(size.m / 8, 1, 128); }

std::vector<Case> nominal_cases() {
  Case nominal =
      make("nominal", "x uniform in [-4, 4), weight of N(0, 0.02) quantised by row: upstream's data, timed",
           nominal_state, scaled_by(1),
           {"zeros", "constant", "copy_input", "permuted_rows", "stale", "stale_weight", "one_wrong", "one_scale",
            "last_column_dropped", "odd_column_dropped", "tail_dropped", "tail_unmasked", "e5m2_operands"});
  nominal.nominal = true;
  return {
      as_upstream({0.2, 0.2}, nominal),
      as_upstream({5e-4, 5e-2},
                  make("small_input", "x times 1e-3 (upstream's stress): 0, 2^-9 and 2^-8 only, all subnormal",
                       nominal_state, scaled_by(1e-3f), {"zeros", "flush_subnormals", "fixed_point", "stale"})),
      as_upstream({12.0, 5e-2},
                  make("large_input", "x times 64 (upstream's stress): up to 256, beyond fp16 when summed",
                       nominal_state, scaled_by(64), {"zeros", "clamped_to_nominal", "one_wrong", "stale"})),
      as_upstream({3e-3, 5e-2}, make("small_weight", "weight times 0.01, rounded to e4m3 again (upstream's stress)",
                                     [](const StateDraw& draw) {
                                       nominal_state(draw);
                                       rescale_weight(draw, Everywhere{1e-2f});
                                     },
                                     scaled_by(1), {"zeros", "one_wrong", "stale", "e5m2_operands"})),
  };
}

/// One bit pattern is right, whatever the order of the sums and however they are cut (fills.cpp).
std::vector<Case> exact_cases() {
  return {
      exact(make("exact_ternary",
                 "-1, 0, 1 times a power of two per row, 2^-9 to 2^8: every column of K decides some output",
                 ternary_state, ternary_x,
                 {"zeros", "last_column_dropped", "odd_column_dropped", "tail_dropped", "tail_unmasked",
                  "flush_subnormals", "permuted_rows", "stale", "one_wrong", "fixed_point"})),
      exact(make("exact_integers", "-7 to 7: sums of up to 14 bits, which bf16 or fp16 parts round", integer_state,
                 integer_x,
                 {"last_column_dropped", "odd_column_dropped", "tail_dropped", "tail_unmasked", "bf16_accumulator",
                  "bf16_split_k", "truncated_output", "stale", "one_wrong"})),
      exact(make("exact_saturated", "-448, 0, 448: the largest numbers, and sums far beyond fp16", saturated_state,
                 saturated_x, {"fp16_partial_sums", "tail_dropped", "clamped_to_nominal", "stale", "one_wrong"})),
      exact(make("exact_sparse", "a quarter are -15 to 15: all four bits of e4m3 count", sparse_state, sparse_x,
                 {"e5m2_operands", "truncated_output", "tail_dropped", "stale", "one_wrong"})),
      exact(make("exact_subnormals", "-7 to 7 times 2^-9, in both factors: nothing but subnormals", subnormal_state,
                 subnormal_x, {"flush_subnormals", "fixed_point", "last_column_dropped", "stale", "one_wrong"})),
  };
}

std::vector<Case> amplitude_cases() {
  return {
      on_several_rows(
          by_element(make("mixed_rows", "each row of x has its own amplitude, 2^-6 to 2^6: one range for all rows",
                          nominal_state, [](const InputDraw& draw) { mixed_rows_x(draw, 1); },
                          {"small_rows_skipped", "range_from_prefix", "clamped_to_nominal", "permuted_rows"}))),
      on_several_rows(
          by_element(make("mixed_tiles", "each tile of rows of x has its own amplitude, 2^-6 to 2^6", nominal_state,
                          [](const InputDraw& draw) { mixed_rows_x(draw, tile_rows(draw.size)); },
                          {"small_rows_skipped", "range_from_prefix", "clamped_to_nominal"}))),
      by_element(make("mixed_columns", "rows of weight differ by 2^6, their scales by 2^32", mixed_columns_state,
                      scaled_by(1), {"one_scale", "scale_fp16", "stale"})),
      make("loud_tail", "the last K mod 32 columns of x times 64: they carry most of the sum", nominal_state,
           loud_tail_x, {"tail_dropped", "odd_column_dropped", "clamped_to_nominal"}),
      make(
          "prefix_nominal", "the first 64 KiB of x and weight nominal, the rest of x times 8: a look at the beginning",
          [](const StateDraw& draw) { prefix_state(draw, 1, 0.125f); },
          [](const InputDraw& draw) { prefix_x(draw, 1, 8); }, {"range_from_prefix", "clamped_to_nominal"}),
      make(
          "prefix_large", "the first 64 KiB of x times 8, the rest nominal: a look at the beginning",
          [](const StateDraw& draw) { prefix_state(draw, 0.125f, 1); },
          [](const InputDraw& draw) { prefix_x(draw, 8, 1); }, {"range_from_prefix", "clamped_to_nominal"}),
      make("random_scale", "x, weight and scales times random factors: recognition of the public amplitudes",
           random_scale_state, random_scale_x, {"stale", "one_wrong", "one_scale", "last_column_dropped"}),
      make("any_code", "every finite bit pattern of e4m3 as likely as any other: both zeros, subnormals, 448",
           any_code_state, any_code_x, {"e5m2_operands", "clamped_to_nominal", "fp16_partial_sums", "one_wrong"}),
      make("zero_rows", "half of the rows of x and of weight are zero: their outputs are exactly 0", zero_rows_state,
           zero_rows_x, {"rows_rescaled", "one_wrong", "stale"}),
  };
}

Case one_sign() {
  Case c = make(std::string(kOneSign), "x and weight positive: tells how the accumulator rounds (a note, no verdict)",
                one_sign_state, one_sign_x, {"zeros", "one_wrong"});
  c.bounds = one_sign_bounds(usual_size());
  return c;
}

std::vector<Case> repeated_cases() {
  Case in_place = make("in_place", "1 to 7 random elements of x change between calls: answers kept from before",
                       nominal_state, scaled_by(1), {"stale", "sampled_memo"});
  in_place.kind = CaseKind::repeated;
  in_place.calls = 3;  // one change may hit an element that a memo looks at
  in_place.change = [](const DrawKey& key, int step, std::span<const TensorView> tensors, const Expected&) {
    change_some(InputDraw(key, tensors), step);
  };
  Case two_states = make("two_states", "two states in turn: weights kept from the first one", nominal_state,
                         scaled_by(1), {"stale_weight", "stale"});
  two_states.kind = CaseKind::two_states;
  return {in_place, two_states};
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& group : {nominal_cases(), exact_cases(), amplitude_cases(), {one_sign()}, repeated_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::fp8_gemm
