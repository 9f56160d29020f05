#include <algorithm>
#include <numeric>

#include "problems/07_w4a16_gemm/fills.hpp"

namespace kbh::w4a16 {
namespace {

using FillState = void (*)(const State&);
using FillInputs = std::function<void(const Inputs&)>;
using Names = std::vector<std::string>;

// The tolerance: |out - ref| <= a |x_i| |w_j| / sqrt(K) + r |ref|, and relative Frobenius errors over the output and
// over each of its rows. What may be honest: weights rounded to bf16 or exact, fp16 operands, scale and zero point
// applied to sums over a group; fp32 sums; one rounding of the output.
//   r: one rounding to bf16 moves a value by 2^-8 of itself at most; twice that.
//   a: weights rounded to bf16 err by 0.425 * 2^-8 = 0.00166 of themselves (root mean square over mantissas), their
//      sum by as much of |x_i| |w_j| / sqrt(K). A column that lives on one group has only 16 different weights, whose
//      errors depend on the mantissa of one scale: up to 0.00254. The largest of 10^8 Gaussian errors is 6 deviations,
//      0.015. Measured, what r leaves over: 0.008 in 3 * 10^5 nominal elements, 0.0094 where one group counts.
//   Frobenius: sqrt(2) * 0.00166 = 0.0023 for rounded weights and output (measured 0.0022), twice that. A row of a
//      narrow matrix is a small sample (64 columns: 0.0034 measured), so a row has a third more.
// A split of K whose partial sums are rounded to bf16 is not declared precision: it errs by 0.0035 (4 parts) to 0.0055
// (16 parts) and is left to the exact cases.
constexpr Bounds kBounds{.a = 0.016, .r = 0x1p-7, .frobenius = 0.0045, .group = 0.006};
// Where few terms or columns make up a norm, the norm of the output says little about its error: x may happen to cancel
// in just these (measured: honest Frobenius errors up to 0.038 on a narrow matrix). The scale of each element holds.
constexpr Bounds kElements{.a = 0.016, .r = 0x1p-7};
constexpr Bounds kExact{.exact = true};

// The public ones: 0.10 on bf16 outputs, and what its two stress cases relax it to.
constexpr UpstreamTolerance kUpstream{0.10, 0.10};
constexpr UpstreamTolerance kUpstreamSmall{1e-4, 0.05};
constexpr UpstreamTolerance kUpstreamLarge{1.0, 0.05};

// ---- states
// -----------------------------------------------------------------------------------------------------------

template <typename Levels, typename Scales, typename Zeros>
void draw_state(const State& state, Levels levels, Scales scales, Zeros zeros) {
  fill_each(state.scales, state.stream("scales"), scales);
  fill_each(state.zeros, state.stream("zeros"), zeros);
  fill_each(state.units(), state.stream("w_q"), levels);
}

constexpr ZeroPointBf16 kAnyZero{0, 16};

void spread_scales(const State& state) { draw_state(state, UniformLevels{}, LogUniformBf16{-12, 4}, kAnyZero); }
void large_scales(const State& state) { draw_state(state, UniformLevels{}, LogUniformBf16{0, 9}, kAnyZero); }
void any_scales(const State& state) { draw_state(state, UniformLevels{}, LogUniformBf16{-14, 12}, kAnyZero); }
void highest_levels(const State& state) {
  draw_state(state, HighestLevels{}, LogUniformBf16{-8, -6}, ZeroPointBf16{0, 1});
}
void extremes(const State& state) { draw_state(state, ExtremeLevels{}, LogUniformBf16{-8, -6}, ExtremeZeroBf16{}); }
void one_or_two(const State& state) { draw_state(state, UniformLevels{}, OneOrTwoBf16{}, kAnyZero); }

void near_zero_points(const State& state) {
  fill_each(state.zeros, state.stream("zeros"), ZeroPointBf16{11, 4});
  fill_each(state.scales, state.stream("scales"), LogUniformBf16{-8, -6});
  fill_each(state.units(), state.stream("w_q"),
            LevelsNearZero{state.zeros.data(), static_cast<std::uint64_t>(state.size.n)});
}

template <LiveGroupBf16::Place Where>
void live_group(const State& state) {
  const LiveGroupBf16 scales{Where, state.stream("places"), static_cast<std::uint64_t>(state.size.n),
                             static_cast<std::uint32_t>(state.size.groups())};
  draw_state(state, UniformLevels{}, scales, kAnyZero);
}

void multiply_scale(std::uint16_t& scale, float factor) { scale = to_bf16(from_bf16(scale) * factor); }

/// Powers of two from 2^-6 to 2^6, evenly spread over `count` tiles in random order: some are far apart always.
std::vector<float> amplitudes(Random& random, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t step = count > 1 ? i * 12 / (count - 1) : 6;
    values.push_back(philox::exp2(static_cast<float>(step) - 6));
  }
  for (std::int64_t i = count - 1; i > 0; --i) std::swap(values[index(i)], values[index(random.below(i + 1))]);
  return values;
}

constexpr std::int64_t column_tile(const Sizes& size) { return size.n >= 256 ? 128 : kColumnUnit; }

void mixed_columns(const State& state) {
  quantised_normal(state);
  const std::int64_t tile = column_tile(state.size);
  Random random(state.stream("amplitudes"));
  const std::vector<float> factors = amplitudes(random, (state.size.n + tile - 1) / tile);
  for (std::int64_t i = 0; i < std::ssize(state.scales); ++i)
    multiply_scale(state.scales[index(i)], factors[index(i % state.size.n / tile)]);
}

/// 64 KiB, or half of a tensor that is shorter than twice that.
std::uint64_t prefix_length(std::size_t elements) {
  return std::min<std::uint64_t>((64u << 10) / sizeof(std::uint16_t), elements / 2);
}

void prefix_scales(const State& state, float first, float rest) {
  quantised_normal(state);
  for (std::size_t i = 0; i < state.scales.size(); ++i)
    multiply_scale(state.scales[i], i < prefix_length(state.scales.size()) ? first : rest);
}
void quiet_prefix_scales(const State& state) { prefix_scales(state, 1, 8); }
void loud_prefix_scales(const State& state) { prefix_scales(state, 8, 1); }

// ---- inputs
// -----------------------------------------------------------------------------------------------------------

template <typename Draw>
FillInputs each(Draw draw) {
  return [draw](const Inputs& inputs) { fill_each(inputs.x, inputs.stream(), draw); };
}

/// The same for draws that need to know the length of a row.
template <typename Make>
FillInputs each_of_row(Make make) {
  return [make](const Inputs& inputs) {
    fill_each(inputs.x, inputs.stream(), make(static_cast<std::uint64_t>(inputs.size.k)));
  };
}

FillInputs prefix(float first, float rest) {
  return [=](const Inputs& inputs) {
    fill_each(inputs.x, inputs.stream(), PrefixBf16{prefix_length(inputs.x.size()), first, rest});
  };
}

void one_group(const Inputs& inputs) {
  fill_each(inputs.x, inputs.stream(),
            OneGroupBf16{static_cast<std::uint64_t>(inputs.size.k), inputs.stream("places")});
}

void random_scale(const Inputs& inputs) {
  fill_each(inputs.x, inputs.stream(), NormalBf16{inputs.random("scale").log_uniform(-12, 12)});
}

void mixed_rows(const Inputs& inputs) {
  const std::int64_t tile = std::max<std::int64_t>(1, inputs.size.m / 8);
  Random random = inputs.random("amplitudes");
  const std::vector<float> factors = amplitudes(random, (inputs.size.m + tile - 1) / tile);
  std::vector<float> rows;
  for (std::int64_t i = 0; i < inputs.size.m; ++i) rows.push_back(factors[index(i / tile)]);
  fill_each(inputs.x, inputs.stream(), RowsBf16{rows.data(), static_cast<std::uint64_t>(inputs.size.k)});
}

/// 1 to 7 elements become large: each moves its row of the output by about half of the row's root mean square at
/// K = 4096, many times the tolerance.
void change_some(const DrawKey& key, int step, std::span<const TensorView> tensors, const Expected&) {
  const Inputs inputs(key, tensors);
  Random random = inputs.random("step " + std::to_string(step));
  for (std::int64_t left = random.between(1, 7); left > 0; --left) {
    const float magnitude = random.uniform(24, 48);
    const std::int64_t place = random.below(std::ssize(inputs.x));
    inputs.x[index(place)] = signed_bf16(magnitude, random.word());
  }
}

// ---- cases
// ------------------------------------------------------------------------------------------------------------

Case single(std::string name, std::string about, FillState state, FillInputs inputs, Names kills) {
  Case c;
  c.name = std::move(name);
  c.about = std::move(about);
  c.fill_state = [state](const DrawKey& key, std::span<const TensorView> tensors) { state(State(key, tensors)); };
  c.fill = [inputs = std::move(inputs)](const DrawKey& key, std::span<const TensorView> tensors) {
    inputs(Inputs(key, tensors));
  };
  c.bounds = kBounds;
  c.kills = std::move(kills);
  return c;
}

Case as_upstream(UpstreamTolerance tolerance, Case c) {
  c.upstream = tolerance;
  return c;
}

Case by_element(Case c) {
  c.bounds = kElements;
  return c;
}

Case exact(Case c) {
  c.bounds = kExact;
  return c;
}

Case where(bool (*applies)(const Sizes&), Case c) {
  c.applies = [applies](const Shape& shape) { return applies(Sizes(shape)); };
  return c;
}

bool several_rows(const Sizes& size) { return size.m > 1; }
bool several_groups(const Sizes& size) { return size.groups() > 1; }
bool several_tiles(const Sizes& size) { return size.n > column_tile(size); }

std::vector<Case> activation_cases() {
  const FillInputs normal = each(NormalBf16{1});
  Case first = single("nominal", "normal x, quantised normal weights: the public distribution, the one that is timed",
                      quantised_normal, normal,
                      {"zeros", "constant", "copy_input", "permuted_rows", "stale", "kept_weights", "one_wrong",
                       "zero_point_ignored", "zero_point_off_by_one", "nibbles_swapped", "group_off_by_one",
                       "last_group_dropped", "highest_level_clamped", "folded_multiply_add"});
  first.nominal = true;
  return {
      as_upstream(kUpstream, first),
      as_upstream(kUpstreamSmall, single("small_activation", "x times 1e-3 (public stress): absolute thresholds",
                                         quantised_normal, each(NormalBf16{1e-3f}),
                                         {"zeros", "one_wrong", "small_activations_flushed", "fixed_point_sums"})),
      as_upstream(kUpstreamLarge, single("large_activation", "x times 64 (public stress): fixed ranges",
                                         quantised_normal, each(NormalBf16{64}), {"one_wrong", "activations_clamped"})),
      single("random_scale", "x times a random scale in 2^-12..2^12: recognition of the public scales",
             quantised_normal, random_scale, {"zeros", "one_wrong"}),
      where(several_rows,
            single("mixed_rows", "rows of x of very different amplitude: tiles skipped, one range for all",
                   quantised_normal, mixed_rows, {"quiet_rows_skipped", "permuted_rows", "one_wrong"})),
      single("one_sign", "x of one sign, levels near their zero points: large sums that cancel need every digit",
             near_zero_points, each(PositiveBf16{}),
             {"rounded_row_sums", "rounded_zero_products", "folded_multiply_add", "zero_point_off_by_one"}),
      single("prefix_nominal", "the first 64 KiB of x and scales nominal, the rest x 8: a look at the front only",
             quiet_prefix_scales, prefix(1, 8), {"range_from_front", "one_wrong"}),
      single("prefix_large", "the first 64 KiB of x and scales x 8, the rest nominal: a look at the front only",
             loud_prefix_scales, prefix(8, 1), {"one_wrong"}),
      single("last_group_large", "the last 128 of each row of x are 32 times as large: dropped tails of K",
             quantised_normal, each_of_row([](std::uint64_t k) {
               return TailBf16{k, kGroup, 32};
             }),
             {"last_group_dropped", "group_off_by_one"}),
      single("last_k_large", "x[.., K-1] is +-64: a dropped last k, activations in int8", quantised_normal,
             each_of_row([](std::uint64_t k) {
               return LastBf16{k, 64};
             }),
             {"last_k_dropped", "int8_activations", "activations_clamped"}),
      where(several_groups, single("one_group_of_x", "x is 0 but for one group of each row: zeros taken for padding",
                                   quantised_normal, one_group, {"padding_guessed", "one_wrong"})),
  };
}

std::vector<Case> weight_cases() {
  const FillInputs normal = each(NormalBf16{1});
  using Place = LiveGroupBf16::Place;
  return {
      by_element(single("spread_scales",
                        "scales in 2^-12..2^4, random per group and column: fixed ranges, groups skipped",
                        spread_scales, normal,
                        {"zeros", "one_wrong", "zero_point_ignored", "zero_points_clamped", "scales_in_fixed_point",
                         "quiet_groups_skipped"})),
      by_element(single("all_scales", "scales over the whole domain, 2^-14..2^12: fixed ranges", any_scales, normal,
                        {"zeros", "one_wrong", "scales_in_fixed_point"})),
      by_element(single("highest_levels", "every level 15, every zero point 0: weights of one sign", highest_levels,
                        each(LeaningBf16{}), {"highest_level_clamped", "zero_point_off_by_one", "one_wrong"})),
      single("extremes", "levels 0 and 15, zero points 0 and 15: the ends of both ranges", extremes, normal,
             {"zero_points_clamped", "highest_level_clamped", "zero_point_off_by_one", "one_wrong"}),
      single("near_zero_point", "levels within 1 of zero points of 11 to 14: whoever rounds before subtracting",
             near_zero_points, normal, {"folded_multiply_add", "zero_point_off_by_one", "one_wrong"}),
      where(several_tiles,
            by_element(single("mixed_columns", "column tiles of very different scale: tiles skipped, one range for all",
                              mixed_columns, normal, {"quiet_columns_skipped", "scales_in_8_bits", "one_wrong"}))),
      where(several_groups, single("live_first", "all but the first group of each column are 2^-24 as large",
                                   live_group<Place::first>, normal, {"one_wrong", "zero_point_ignored"})),
      where(several_groups,
            single("live_last", "all but the last group of each column are 2^-24 as large", live_group<Place::last>,
                   normal, {"last_group_dropped", "scale_range_from_first_group"})),
      where(several_groups,
            single("live_anywhere", "one group of each column, anywhere, is 2^24 times as large as the others",
                   live_group<Place::anywhere>, normal, {"group_off_by_one", "zero_point_ignored", "fp16_output"})),
      by_element(single("beyond_fp16", "x times 64, scales up to 2^9: outputs beyond the largest fp16", large_scales,
                        each(NormalBf16{64}), {"fp16_output", "fp16_accumulation", "scales_in_fixed_point"})),
      // x, q, z and s are small integers: every partial sum is an integer below 2^24, exact for rounded weights, fp16
      // operands and deferred scales alike.
      exact(single("exact_ternary", "x in -1, 0, 1, scales 1 and 2: the answer has one bit pattern", one_or_two,
                   each_of_row([](std::uint64_t k) { return TernaryBf16{k}; }),
                   {"zeros", "one_wrong", "last_k_dropped", "bf16_split_k"})),
      exact(single("exact_integers", "x from -7 to 7, scales 1 and 2: the answer has one bit pattern", one_or_two,
                   each(SmallIntegerBf16{}), {"zeros", "one_wrong", "bf16_split_k", "bf16_accumulation"})),
  };
}

std::vector<Case> call_cases() {
  const FillInputs normal = each(NormalBf16{1});
  Case changed = single("in_place", "the same buffers, 1 to 7 elements of x change: answers kept from before",
                        quantised_normal, normal, {"stale", "sampled_memo"});
  changed.kind = CaseKind::repeated;
  changed.calls = 3;
  changed.change = change_some;
  Case states = single("two_states", "two sets of weights in turn: weights kept from before", quantised_normal, normal,
                       {"stale", "kept_weights"});
  states.kind = CaseKind::two_states;
  return {changed, states};
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& group : {activation_cases(), weight_cases(), call_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::w4a16
