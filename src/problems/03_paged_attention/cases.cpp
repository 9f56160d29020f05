#include <utility>

#include "problems/03_paged_attention/draws.hpp"

namespace kbh::paged_attention {
namespace {

using Fill = std::function<void(const Data&)>;
using Applies = bool (*)(const Sizes&);
using Names = std::vector<std::string>;

bool always(const Sizes&) { return true; }
bool several_sequences(const Sizes& s) { return s.batch >= 2; }
bool several_kv_heads(const Sizes& s) { return s.num_kv_heads >= 2; }
bool several_tokens(const Sizes& s) { return s.seq_len >= 2 * s.page_size; }
bool sharing(const Sizes& s) { return several_sequences(s) && several_tokens(s); }

// Rounding once to bf16 moves an element by at most 2^-8 of itself: r is twice that. Everything else adds up in squares
// (0.425 u per rounding to unit u; F is the relative Frobenius error): the output 0.0017, weights rounded to bf16 up to
// 0.0017 more, partial sums of a split rounded to bf16 another 0.0017. Honest kernels with all of these at once
// measured F up to 0.0034 over the tensor and 0.0045 over a row (tests: at most 0.61 of these bounds); one of them
// alone up to 0.0029, 0.0035, and a 0.008 beyond r |ref|.
constexpr Bounds kUniform = {.a = 0.018, .r = 0x1p-7, .frobenius = 0.0056, .group = 0.0075};

// Scores that spread by 2 make the error of a score count: the scale folded into a bf16 query (legal, the worst of the
// honest ones) gives F 0.0037, 0.0068 over a row and a 0.016; with bf16 weights and partial sums besides, 0.65 of these
// bounds (tests). Scores rounded to bf16 give 0.010 to 0.011, 0.015 to 0.018 and 0.037 to 0.050: too near to be
// claimed, so scores_high and scores_low see to that.
constexpr Bounds kPeaked = {.a = 0.024, .r = 0x1p-7, .frobenius = 0.0060, .group = 0.010};

// One weight is 1 and all others vanish, or all are equal and so are the values: one bit pattern is right.
constexpr Bounds kExact = {.exact = true};

constexpr UpstreamTolerance kUpstream = {.atol = 0.02, .rtol = 0.02};
constexpr UpstreamTolerance kUpstreamSmall = {.atol = 5e-4, .rtol = 5e-2};
constexpr UpstreamTolerance kUpstreamLarge = {.atol = 5e-2, .rtol = 5e-2};

std::function<void(const DrawKey&, std::span<const TensorView>)> on_tensors(Fill fill) {
  return
      [fill = std::move(fill)](const DrawKey& key, std::span<const TensorView> tensors) { fill(Data(key, tensors)); };
}

Case single(std::string name, std::string about, Bounds bounds, Fill fill, Names kills, Applies applies = always) {
  Case c;
  c.name = std::move(name);
  c.about = std::move(about);
  c.applies = [applies](const Shape& shape) { return applies(Sizes(shape)); };
  c.fill = on_tensors(std::move(fill));
  c.bounds = bounds;
  c.kills = std::move(kills);
  return c;
}

Case as_upstream(UpstreamTolerance tolerance, Case c) {
  c.upstream = tolerance;
  return c;
}

/// Upstream's distribution, and how large the numbers are.
std::vector<Case> scale_cases() {
  Case first = single(
      "nominal", "normal x 0.1, all sequences full: the public distribution, the one that is timed", kUniform, nominal,
      {"zeros", "constant", "copy_query", "permuted_sequences", "one_wrong", "stale", "table_kept", "last_page_dropped",
       "inner_page_skipped", "last_512_only", "first_512_only", "table_ignored", "first_table_for_all",
       "heads_interleaved", "k_v_swapped", "arg_max_only", "scale_missing", "weights_fp8"});
  first.nominal = true;
  first.upstream = kUpstream;
  return {
      first,
      as_upstream(kUpstreamSmall,
                  single("small_q_kv", "normal x 1e-3 (public stress): absolute thresholds", kUniform,
                         [](const Data& d) { scaled(d, 1e-2f); }, {"zeros", "last_page_dropped", "heads_interleaved"})),
      as_upstream(kUpstreamLarge, single("large_q_kv", "normal x 0.8 (public stress): scores spread by 0.6", kUniform,
                                         [](const Data& d) { scaled(d, 8); },
                                         {"uniform_average", "scale_missing", "exponential_by_series", "weights_fp8"})),
      single("random_scale", "queries, keys and values of random sizes, values beyond fp16: recognition, fp16", kPeaked,
             random_scale, {"values_fp16", "one_wrong"}),
      single("peaked", "scores N(0, 2^2): errors of the scores and of the softmax", kPeaked, peaked,
             {"uniform_average", "arg_max_only", "scale_missing", "scale_of_128", "public_scales", "no_rescale",
              "exponential_by_series", "weights_fp8"}),
      single("mixed_sequences", "values of each sequence have a random size: work skipped where little is added",
             kUniform, mixed_sequences, {"quiet_sequence_skipped", "permuted_sequences"}, several_sequences),
      single("mixed_heads", "values and scores of each head have a random size: the same by head, wrong heads", kPeaked,
             mixed_heads, {"quiet_head_skipped", "heads_interleaved"}, several_kv_heads),
      single("prefix_nominal", "the first 64 KiB of the cache nominal, the rest x 8: a look at its front only",
             kUniform, [](const Data& d) { prefix(d, 1, 8); }, {"values_fixed_point"}),
      single("prefix_large", "the first 64 KiB of the cache x 8, the rest nominal: a look at its front only", kUniform,
             [](const Data& d) { prefix(d, 8, 1); }, {"zeros", "one_wrong"}),
  };
}

/// Lengths, pages, and what stands where nothing should be read.
std::vector<Case> length_cases() {
  return {
      single("ragged", "random lengths: each sequence has its own", kUniform, ragged,
             {"lengths_kept", "longest_for_all", "first_length_for_all", "whole_last_page"}),
      single("one_long", "one full sequence, all others of two pages at most: work shared out by mean length", kUniform,
             one_long, {"balanced_lengths", "longest_for_all"}, several_sequences),
      single("ramp", "lengths at page edges; the last token decides, garbage behind it pulls the other way", kUniform,
             ramp, {"length_minus_one", "length_plus_one", "whole_last_page", "last_page_dropped"}),
      single("poison", "the same with NaN, infinities and the largest number in unused slots and pages", kUniform,
             poisoned,
             {"length_plus_one", "whole_last_page", "masked_by_weight", "masked_by_addition", "last_page_dropped"}),
      single("single_token", "every sequence holds one token, NaN and the like elsewhere: the answer is its value",
             kExact, single_token,
             {"zeros", "length_minus_one", "length_plus_one", "first_token_skipped", "padding_scores_zero",
              "short_sequences_skipped", "masked_by_weight", "one_wrong"}),
      as_upstream(kUpstream,
                  single("signs", "K = 0, V = 1 in valid slots and -1 elsewhere (public property case)", kExact,
                         [](const Data& d) {
                           signs(d, {16, 1, 3});
                         },
                         {"zeros", "one_wrong", "whole_last_page", "padding_scores_zero"})),
      single("random_signs", "the same with random lengths (public property case)", kExact, random_signs,
             {"zeros", "one_wrong", "whole_last_page", "padding_scores_zero"}),
      single("shared_pages", "every second sequence begins with pages of the one before", kUniform, shared,
             {"one_owner_per_page"}, sharing),
      single("both_ends", "the first and the last page of the cache are in use", kUniform, both_ends,
             {"page_zero_is_null", "spare_pages_wrap"}),
  };
}

/// Where the weight lies.
std::vector<Case> weight_cases() {
  return {
      single("hot_key", "one key for each query holds nearly all weight: last token, last page, anywhere", kUniform,
             hot, {"length_minus_one", "last_page_dropped", "uniform_average", "heads_interleaved"}),
      single("spike_first", "the first token scores 120, all others about 0: the answer is its value", kExact,
             [](const Data& d) { spike(d, false); }, {"first_token_skipped", "no_max", "uniform_average"}),
      single("spike_last", "the last token scores 120, all others about 0: the answer is its value", kExact,
             [](const Data& d) { spike(d, true); }, {"length_minus_one", "first_page_max", "no_rescale", "no_max"}),
      single("scores_high", "all scores near 120: the exponential overflows unless the maximum is taken off", kPeaked,
             [](const Data& d) { offset_scores(d, 1); }, {"no_max", "scores_clamped", "scores_bf16"}),
      single("scores_low", "all scores near -120: it underflows", kPeaked, [](const Data& d) { offset_scores(d, -1); },
             {"no_max", "max_from_zero", "scores_clamped", "scores_bf16"}),
  };
}

Case in_place_case() {
  Case c = single("in_place", "the same buffers: a few elements of the cache, the queries, the table, the lengths",
                  kPeaked, in_place, {"stale", "same_query_same_answer", "table_kept", "lengths_kept"}, several_tokens);
  c.kind = CaseKind::repeated;
  c.calls = kInPlaceCalls;
  c.change = [](const DrawKey& key, int step, std::span<const TensorView> tensors, const Expected&) {
    in_place_change(Data(key, tensors), step);
  };
  return c;
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all = scale_cases();
  for (const auto& group : {length_cases(), weight_cases(), {in_place_case()}})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::paged_attention
