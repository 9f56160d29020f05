// Wrong kernels that look right. Their code stands in redteam/mutants/01_fp8_gemm, where each is a submission too.
#include "01_fp8_gemm/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/01_fp8_gemm/fp8_gemm.hpp"

namespace kbh::fp8_gemm {
namespace {

using Wrong = wrong::Mutant;
using Applies = std::function<bool(const Sizes&)>;

bool several_rows(const Sizes& size) { return size.m > 1; }
bool several_columns(const Sizes& size) { return size.n > 1; }
bool odd_k(const Sizes& size) { return size.k % 2 == 1; }
bool ragged_k(const Sizes& size) { return size.k % 32 != 0; }
bool ragged_k_and_rows(const Sizes& size) { return ragged_k(size) && size.m > 1 && size.n > 1; }
bool more_than_one_step(const Sizes& size) { return size.k > 64; }

Mutant make(std::string name, std::string about, Wrong wrong, const Applies& applies = {}) {
  Mutant mutant;
  mutant.name = std::move(name);
  mutant.about = std::move(about);
  if (applies) mutant.applies = [applies](const Shape& shape) { return applies(Sizes(shape)); };
  mutant.run = host_answer([wrong](const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
    wrong::run(wrong, state, inputs, outputs);
  });
  return mutant;
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      make("zeros", "writes zeros", Wrong::zeros),
      make("constant", "writes its first output everywhere", Wrong::constant),
      make("copy_input", "writes x", Wrong::copy_input),
      make("permuted_rows", "rows of the output moved by one", Wrong::permuted_rows, several_rows),
      make("stale", "returns the answer of the call before", Wrong::stale),
      make("stale_weight", "keeps the weights of the first state of each size", Wrong::stale_weight),
      make("sampled_memo", "returns the former answer when the ends of x did not change", Wrong::sampled_memo),
      make("one_wrong", "one element off by twice itself", Wrong::one_wrong),
      make("one_scale", "scales every column by weight_scale[0]", Wrong::one_scale, several_columns),
      make("scale_fp16", "keeps the scales in fp16", Wrong::scale_fp16),
      make("last_column_dropped", "sums K - 1 columns", Wrong::last_column_dropped),
      make("odd_column_dropped", "sums pairs of columns", Wrong::odd_column_dropped, odd_k),
      make("tail_dropped", "sums whole steps of 32 columns", Wrong::tail_dropped, ragged_k),
      make("tail_unmasked", "the last step of 32 columns reads into the next rows", Wrong::tail_unmasked,
           ragged_k_and_rows),
      make("whole_tiles_only", "writes whole tiles of 8 x 8 outputs", Wrong::whole_tiles_only),
      make("e5m2_operands", "rounds x and weight to e5m2", Wrong::e5m2_operands),
      make("flush_subnormals", "takes subnormal factors for zeros", Wrong::flush_subnormals),
      make("fixed_point", "x as multiples of 2^-6", Wrong::fixed_point),
      make("clamped_to_nominal", "clamps x to -4 .. 4", Wrong::clamped_to_nominal),
      make("range_from_prefix", "x in 128 steps of the largest of its first 64 KiB", Wrong::range_from_prefix),
      make("rows_rescaled", "brings each row of x to full range: 0 / 0 in rows of zeros", Wrong::rows_rescaled),
      make("small_rows_skipped", "takes rows of x below 1/64 of the largest element for zeros",
           Wrong::small_rows_skipped, several_rows),
      make("bf16_accumulator", "rounds the sum to bf16 every 64 columns", Wrong::bf16_accumulator, more_than_one_step),
      make("bf16_split_k", "K in four parts, summed in bf16", Wrong::bf16_split_k, more_than_one_step),
      make("fp16_partial_sums", "K in four parts, each of which must fit fp16", Wrong::fp16_partial_sums,
           more_than_one_step),
      make("truncated_output", "cuts the output to bf16 instead of rounding it", Wrong::truncated_output),
  };
}

}  // namespace kbh::fp8_gemm
