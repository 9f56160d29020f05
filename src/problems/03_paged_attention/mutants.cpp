// The wrong kernels that also stand as submissions under redteam/mutants/03_paged_attention.
#include <utility>

#include "03_paged_attention/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/03_paged_attention/paged_attention.hpp"

namespace kbh::paged_attention {
namespace {

using Applies = bool (*)(const Sizes&);

bool always(const Sizes&) { return true; }
bool several_sequences(const Sizes& s) { return s.batch >= 2; }
bool several_kv_heads(const Sizes& s) { return s.num_kv_heads >= 2; }
bool several_tokens(const Sizes& s) { return s.seq_len >= 2 * s.page_size; }
bool long_sequences(const Sizes& s) { return s.seq_len >= 1024; }

Mutant planted(wrong::Mutant which, std::string name, std::string about, Applies applies = always) {
  Mutant mutant;
  mutant.name = std::move(name);
  mutant.about = std::move(about);
  mutant.applies = [applies](const Shape& shape) { return applies(Sizes(shape)); };
  mutant.run = host_answer([which](const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
    wrong::run(which, state, inputs, outputs);
  });
  return mutant;
}

std::vector<Mutant> blunt_mutants() {
  using enum wrong::Mutant;
  return {
      planted(zeros, "zeros", "zeros everywhere"),
      planted(constant, "constant", "one number everywhere"),
      planted(copy_query, "copy_query", "the queries are returned"),
      planted(permuted_sequences, "permuted_sequences", "answers stand one sequence too early", several_sequences),
      planted(one_wrong, "one_wrong", "one wrong element at an unpredictable place"),
      planted(stale, "stale", "the former call's answer, when sizes agree"),
      planted(same_query_same_answer, "same_query_same_answer", "the former answer while the queries are the same"),
      planted(table_kept, "table_kept", "follows the block table of the former call"),
      planted(lengths_kept, "lengths_kept", "follows the lengths of the former call", several_tokens),
      planted(listed_only, "listed_only", "right for the listed lengths alone"),
      planted(public_scales, "public_scales", "averages unless queries and cache have the size of a public case",
              several_tokens),
      planted(quiet_sequence_skipped, "quiet_sequence_skipped", "sequences of small values are left zero",
              several_sequences),
      planted(quiet_head_skipped, "quiet_head_skipped", "heads of small values are left zero", several_kv_heads),
  };
}

std::vector<Mutant> token_mutants() {
  using enum wrong::Mutant;
  return {
      planted(length_minus_one, "length_minus_one", "the last token is dropped"),
      planted(length_plus_one, "length_plus_one", "one slot too many is read"),
      planted(whole_last_page, "whole_last_page", "the last page counts in full"),
      planted(last_page_dropped, "last_page_dropped", "the last page is dropped"),
      planted(tail_of_64_dropped, "tail_of_64_dropped", "tokens behind the last tile of 64 are dropped",
              [](const Sizes& s) { return s.seq_len > 64; }),
      planted(longest_for_all, "longest_for_all", "every sequence is taken to be as long as the longest",
              several_sequences),
      planted(first_length_for_all, "first_length_for_all", "the first sequence's length is taken for all",
              several_sequences),
      planted(balanced_lengths, "balanced_lengths", "room for 1.5 times the mean length only",
              [](const Sizes& s) { return s.batch >= 2 && s.seq_len >= 5 * s.page_size; }),
      planted(last_512_only, "last_512_only", "a window of the last 512 tokens", long_sequences),
      planted(first_512_only, "first_512_only", "the first 512 tokens", long_sequences),
      planted(first_token_skipped, "first_token_skipped", "loops start at 1"),
      planted(short_sequences_skipped, "short_sequences_skipped", "sequences shorter than a page are left zero",
              several_tokens),
      planted(inner_page_skipped, "inner_page_skipped", "the second page is skipped",
              [](const Sizes& s) { return s.seq_len > 2 * s.page_size; }),
      planted(page_zero_is_null, "page_zero_is_null", "page 0 counts as no page"),
      planted(spare_pages_wrap, "spare_pages_wrap", "page numbers are taken modulo the entries of the table"),
      planted(table_ignored, "table_ignored", "pages are taken to lie in order"),
      planted(first_table_for_all, "first_table_for_all", "all sequences follow the first one's table",
              several_sequences),
      planted(one_owner_per_page, "one_owner_per_page", "a page counts for one sequence only",
              [](const Sizes& s) { return s.batch >= 2 && s.seq_len >= 2 * s.page_size; }),
      planted(heads_interleaved, "heads_interleaved", "head h reads head h mod num_kv_heads of the cache",
              [](const Sizes& s) { return s.group() > 1 && s.num_kv_heads > 1; }),
      planted(k_v_swapped, "k_v_swapped", "values are taken for keys"),
  };
}

std::vector<Mutant> softmax_mutants() {
  using enum wrong::Mutant;
  return {
      planted(uniform_average, "uniform_average", "the mean of all values", several_tokens),
      planted(arg_max_only, "arg_max_only", "the value of the best token", several_tokens),
      planted(scale_missing, "scale_missing", "scores are not divided by sqrt(head_dim)", several_tokens),
      planted(scale_of_128, "scale_of_128", "scores are divided by sqrt(128)",
              [](const Sizes& s) { return s.head_dim != 128 && several_tokens(s); }),
      planted(no_max, "no_max", "the exponential of the bare score"),
      planted(max_from_zero, "max_from_zero", "the running maximum starts at 0"),
      planted(first_page_max, "first_page_max", "the maximum is that of the first page", several_tokens),
      planted(no_rescale, "no_rescale", "sums are not scaled when the running maximum rises", several_tokens),
      planted(masked_by_weight, "masked_by_weight", "unused slots get weight 0, and 0 x NaN is NaN"),
      planted(masked_by_addition, "masked_by_addition", "unused slots get -1e30 added, and NaN stays NaN"),
      planted(padding_scores_zero, "padding_scores_zero", "unused slots of the last page score 0"),
      planted(scores_clamped, "scores_clamped", "scores beyond +-30 are cut", several_tokens),
      planted(exponential_by_series, "exponential_by_series", "the exponential is a cubic, good near 0",
              several_tokens),
      planted(scores_bf16, "scores_bf16", "scores are rounded to bf16", several_tokens),
      planted(weights_fp8, "weights_fp8", "weights are rounded to e4m3", several_tokens),
      planted(values_fp16, "values_fp16", "values pass through fp16"),
      planted(values_fixed_point, "values_fixed_point",
              "values have 1535 steps over 1.5 times the range of the cache's front"),
  };
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  for (const auto& group : {blunt_mutants(), token_mutants(), softmax_mutants()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::paged_attention
