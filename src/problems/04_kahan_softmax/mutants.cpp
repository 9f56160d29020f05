// The wrong kernels that also stand as submissions under redteam/mutants/04_kahan_softmax.
#include "04_kahan_softmax/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/04_kahan_softmax/softmax.hpp"

namespace kbh::softmax {
namespace {

kbh::Mutant made(wrong::Mutant which, std::string name, std::string about,
                 std::function<bool(const Sizes&)> applies = {}) {
  kbh::Mutant mutant{std::move(name), std::move(about), {}, {}};
  if (applies) mutant.applies = [applies = std::move(applies)](const Shape& shape) { return applies(Sizes(shape)); };
  mutant.run = host_answer([which](const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
    wrong::run(which, state, inputs, outputs);
  });
  return mutant;
}

bool several_rows(const Sizes& s) { return s.batch >= 2; }
bool several_columns(const Sizes& s) { return s.vocab >= 2; }
/// Below, a plain sum has too few additions to lose anything for sure.
bool long_rows(const Sizes& s) { return s.vocab >= 4096; }
std::function<bool(const Sizes&)> wider_than(std::int64_t columns) {
  return [columns](const Sizes& s) { return s.vocab > columns; };
}
std::function<bool(const Sizes&)> ragged(std::int64_t block) {
  return [block](const Sizes& s) { return s.vocab > block && s.vocab % block != 0; };
}

std::vector<kbh::Mutant> wrong_sums() {
  using enum wrong::Mutant;
  return {
      made(serial, "serial", "one fp32 accumulator", long_rows),
      made(lanes_8, "lanes_8", "8 fp32 accumulators, then a tree", long_rows),
      made(lanes_16, "lanes_16", "16 fp32 accumulators, then a tree", long_rows),
      made(lanes_32, "lanes_32", "a warp's 32 fp32 accumulators, then a tree", long_rows),
      made(threads_256, "threads_256", "256 threads with one fp32 accumulator each, then a tree", long_rows),
      made(threads_1024, "threads_1024", "1024 threads with one fp32 accumulator each, then a tree", long_rows),
      made(pairwise_halves, "pairwise_halves", "fp32 tree over all elements, upper half onto lower half", long_rows),
      made(pairwise_neighbours, "pairwise_neighbours", "fp32 tree over all elements, neighbours first", long_rows),
      made(float4_first, "float4_first", "fp32 sums of four, 256 accumulators, then a tree", long_rows),
      made(runs_256, "runs_256", "256 contiguous fp32 runs, added in turn", long_rows),
      made(tiles_in_turn, "tiles_in_turn", "fp32 trees over tiles of 1024, added in turn", long_rows),
      made(kahan_low_dropped, "kahan_low_dropped", "256 Kahan sums whose low parts the merging tree forgets",
           long_rows),
      made(wide_low_dropped, "wide_low_dropped", "256 fp64 sums, rounded to fp32 before the tree", long_rows),
      made(kahan_lows_apart, "kahan_lows_apart", "256 Kahan sums; the tree adds high and low parts apart", long_rows),
      made(kahan_restarted, "kahan_restarted", "a Kahan sum for each 64 columns, these added plainly", long_rows),
      made(log_sum_exp, "log_sum_exp", "exp(x - (m + log(sum))): the logarithm's rounding is everybody's", long_rows),
  };
}

std::vector<kbh::Mutant> wrong_terms() {
  using enum wrong::Mutant;
  return {
      made(no_maximum, "no_maximum", "the maximum is not subtracted"),
      made(fixed_shift, "fixed_shift", "20 is subtracted instead of the maximum"),
      made(first_tile_maximum, "first_tile_maximum", "the maximum of the first 1024 columns", wider_than(1024)),
      made(row_0_maximum, "row_0_maximum", "row 0's maximum for all rows", several_rows),
      made(prefix_maximum, "prefix_maximum", "the maximum of the tensor's first 64 KiB for all rows",
           [](const Sizes& s) { return s.batch * s.vocab > 16384; }),
      made(clamped_logits, "clamped_logits", "logits clamped to +-60, no maximum"),
      made(no_rescale, "no_rescale", "a running maximum without rescaling the sum", several_columns),
      made(masked_tile_nan, "masked_tile_nan", "tiles with maxima of their own: -inf minus -inf", wider_than(1024)),
      made(fp16_exponential, "fp16_exponential", "exponentials rounded to fp16", several_columns),
      made(bf16_exponential, "bf16_exponential", "exponentials rounded to bf16", several_columns),
      made(rounded_products, "rounded_products", "exp2(fl(x log2e) - fl(m log2e)): the product's rounding stays",
           several_columns),
      made(small_terms_skipped, "small_terms_skipped", "0 for what lies more than 48 below the maximum",
           several_columns),
  };
}

std::vector<kbh::Mutant> wrong_elements() {
  using enum wrong::Mutant;
  return {
      made(last_tile_dropped, "last_tile_dropped", "the sum leaves out the last tile of 1024", wider_than(1024)),
      made(tail_of_4_dropped, "tail_of_4_dropped", "the sum leaves out n mod 4 columns", ragged(4)),
      made(tail_of_32_dropped, "tail_of_32_dropped", "the sum leaves out n mod 32 columns", ragged(32)),
      made(shared_sum, "shared_sum", "row 0's sum for all rows", several_rows),
      made(remembered_sum, "remembered_sum", "maximum and sum kept while n and the first element stay",
           several_columns),
      made(stale, "stale", "returns the answer to the former call"),
      made(one_wrong, "one_wrong", "one element is 1.001 of what it should be"),
      made(permuted_rows, "permuted_rows", "rows in the wrong order", several_columns),
      made(copy_of_input, "copy_of_input", "the logits themselves"),
      made(constant, "constant", "1 / n everywhere", several_columns),
      made(zeros, "zeros", "0 everywhere"),
  };
}

}  // namespace

std::vector<kbh::Mutant> mutants() {
  std::vector<kbh::Mutant> all;
  for (const auto& group : {wrong_sums(), wrong_terms(), wrong_elements()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::softmax
