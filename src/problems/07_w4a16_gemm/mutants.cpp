#include "07_w4a16_gemm/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/07_w4a16_gemm/w4a16.hpp"

namespace kbh::w4a16 {
namespace {

using Kind = wrong::Mutant;
using Applies = bool (*)(const Sizes&);

bool always(const Sizes&) { return true; }
bool several_rows(const Sizes& size) { return size.m > 1; }
bool several_groups(const Sizes& size) { return size.groups() > 1; }
/// Where these are right on the listed shape, a neighbour catches them.
bool many_rows(const Sizes& size) { return size.m >= 16; }
bool whole_tiles(const Sizes& size) { return size.n >= 64; }
bool even_groups(const Sizes& size) { return size.groups() >= 2; }

Mutant mutant(std::string name, std::string about, Applies applies, Kind kind) {
  return {.name = std::move(name),
          .about = std::move(about),
          .applies = [applies](const Shape& shape) { return applies(Sizes(shape)); },
          .run = host_answer([kind](const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
            wrong::run(kind, state, inputs, outputs);
          })};
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      mutant("zeros", "returns zeros", always, Kind::zeros),
      mutant("constant", "returns ones everywhere, the size of a typical answer", always, Kind::constant),
      mutant("copy_input", "returns the activations", always, Kind::copy_input),
      mutant("permuted_rows", "each row of the answer is that of the next row of x", several_rows, Kind::permuted_rows),
      mutant("stale", "returns the answer to the call before", always, Kind::stale),
      mutant("kept_weights", "keeps the weights of the first call", always, Kind::kept_weights),
      mutant("sampled_memo", "returns the former answer when size, first scale and first activation are what they were",
             always, Kind::sampled_memo),
      mutant("one_wrong", "one element, chosen by the data, is off by four times its tolerance", always,
             Kind::one_wrong),
      mutant("zero_point_ignored", "levels times scales: the zero point is forgotten", always,
             Kind::zero_point_ignored),
      mutant("zero_point_off_by_one", "subtracts zero + 1, as in a format that stores zero - 1", always,
             Kind::zero_point_off_by_one),
      mutant("zero_points_clamped", "takes zero points to lie in 2..13", always, Kind::zero_points_clamped),
      mutant("nibbles_swapped", "takes the high nibble for the even k", always, Kind::nibbles_swapped),
      mutant("highest_level_clamped", "takes level 15 for 14", always, Kind::highest_level_clamped),
      mutant("group_off_by_one", "uses scale and zero point of the next group", several_groups, Kind::group_off_by_one),
      mutant("last_k_dropped",
             "leaves out the last k: one term of thousands, and nothing at all where x ends in a small number", always,
             Kind::last_k_dropped),
      mutant("last_group_dropped", "leaves out the last group of K: a loop that ends one step too early",
             several_groups, Kind::last_group_dropped),
      mutant("odd_group_dropped", "takes two groups at a time and leaves out an odd last one", even_groups,
             Kind::odd_group_dropped),
      mutant("ragged_columns_dropped", "columns in tiles of 64; the rest stays 0", whole_tiles,
             Kind::ragged_columns_dropped),
      mutant("ragged_rows_dropped", "more than 16 rows in tiles of 16; the rest stays 0", many_rows,
             Kind::ragged_rows_dropped),
      mutant("folded_multiply_add", "dequantises with one bf16 multiply-add, (128 + q) s - (128 + z) s", always,
             Kind::folded_multiply_add),
      mutant("rounded_zero_products", "levels about 8, (z - 8) s in bf16", always, Kind::rounded_zero_products),
      mutant("rounded_row_sums", "levels about 8, the sum of x over a group in bf16", always, Kind::rounded_row_sums),
      mutant("scales_in_fixed_point", "scales as multiples of 2^-19 below 2^-3", always, Kind::scales_in_fixed_point),
      mutant("int8_activations", "activations in eight bits per row", always, Kind::int8_activations),
      mutant("small_activations_flushed", "activations below 2^-10 count as 0", always,
             Kind::small_activations_flushed),
      mutant("activations_clamped", "activations are limited to +-8", always, Kind::activations_clamped),
      mutant("range_from_front", "limits activations to three times the largest of the first 1024", always,
             Kind::range_from_front),
      mutant("quiet_rows_skipped", "rows of x below 1/16 of the largest are taken for 0", several_rows,
             Kind::quiet_rows_skipped),
      mutant("quiet_columns_skipped", "columns with scales below 1/16 of the largest are taken for 0", always,
             Kind::quiet_columns_skipped),
      mutant("fp16_accumulation", "sums in fp16, rounded after every 16 terms", always, Kind::fp16_accumulation),
      mutant("fp16_output", "the answer passes through fp16", always, Kind::fp16_output),
      mutant("bf16_accumulation", "sums in bf16, rounded after every 64 terms: less than the declared precision",
             several_groups, Kind::bf16_accumulation),
      mutant("bf16_split_k",
             "k in four parts, each rounded to bf16 and added in bf16: less than the declared precision, by too little "
             "to see on normal data",
             several_groups, Kind::bf16_split_k),
      mutant("quiet_groups_skipped", "groups with scales below 1/16 of the largest are taken for 0", always,
             Kind::quiet_groups_skipped),
      mutant("scale_range_from_first_group", "scales are limited to four times those of the first group",
             several_groups, Kind::scale_range_from_first_group),
      mutant("fixed_point_sums", "sums are multiples of 2^-12", always, Kind::fixed_point_sums),
      mutant("scales_in_8_bits", "scales in eight bits of the largest of all", always, Kind::scales_in_8_bits),
      mutant("padding_guessed", "a row of x that begins with a group of zeros is taken for padding", several_groups,
             Kind::padding_guessed),
  };
}

}  // namespace kbh::w4a16
