// The wrong kernels that also stand as submissions under redteam/mutants/08_lightning_attention.
#include <utility>

#include "08_lightning_attention/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/08_lightning_attention/lightning.hpp"

namespace kbh::lightning {
namespace {

Mutant planted(wrong::Mutant which, std::string name, std::string about) {
  Mutant mutant;
  mutant.name = std::move(name);
  mutant.about = std::move(about);
  mutant.run = host_answer([which](const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
    wrong::run(which, state, inputs, outputs);
  });
  return mutant;
}

Mutant needs(std::int64_t sequences, std::int64_t heads, Mutant mutant) {
  mutant.applies = [sequences, heads](const Shape& shape) {
    const Sizes size(shape);
    return size.sequences >= sequences && size.heads >= heads;
  };
  return mutant;
}

}  // namespace

std::vector<Mutant> mutants() {
  using enum wrong::Mutant;
  return {
      planted(zeros, "zeros", "zeros everywhere"),
      planted(constant, "constant", "one number everywhere"),
      planted(copies_memory, "copies_memory", "s is returned as s_next"),
      planted(stale, "stale", "the former call's answer, when sizes agree"),
      planted(one_wrong, "one_wrong", "one wrong element at an unpredictable place"),
      planted(no_decay, "no_decay", "the memory does not fade"),
      planted(decays_new_token, "decays_new_token", "the new token fades too"),
      needs(1, 2, planted(neighbours_decay, "neighbours_decay", "each head uses the next one's decay")),
      planted(reads_before_writing, "reads_before_writing", "o reads the memory before the update"),
      planted(transposed_update, "transposed_update", "v k^T is added instead of k v^T"),
      planted(state_tf32, "state_tf32", "s_next is rounded to tf32"),
      planted(update_bf16, "update_bf16", "k v^T is rounded to bf16"),
      planted(decay_bf16, "decay_bf16", "decay is rounded to bf16"),
      planted(reads_bf16, "reads_bf16", "o reads s_next rounded to bf16"),
      planted(last_row_dropped, "last_row_dropped", "the last row is not updated"),
      needs(1, 2, planted(permuted_heads, "permuted_heads", "two heads are exchanged")),
      // From here on: right on nominal data of usual shapes.
      planted(reads_tf32, "reads_tf32", "o reads s_next rounded to tf32"),
      planted(reads_fp16, "reads_fp16", "o reads s_next rounded to fp16"),
      planted(reads_truncated, "reads_truncated", "o is cut to bf16 instead of rounded"),
      planted(decay_from_index, "decay_from_index", "decays are those of the first layer, not those given"),
      planted(remembered_decay, "remembered_decay", "decays are those of the first call with as many heads"),
      planted(near_one_is_one, "near_one_is_one", "decays above 0.9963 count as 1"),
      planted(drops_old_memory, "drops_old_memory", "decays below 0.01 count as 0"),
      planted(small_update_skipped, "small_update_skipped", "tokens 2^-12 as large as the memory are left out"),
      planted(small_memory_skipped, "small_memory_skipped", "memories 2^-10 as large as the token are left out"),
      planted(zero_key_skips_decay, "zero_key_skips_decay", "rows whose key is 0 are copied"),
      planted(first_row_decides, "first_row_decides", "a memory whose first row is 0 counts as empty"),
      planted(clamped, "clamped", "s_next is clamped to +-64"),
      planted(smallest_skipped, "smallest_skipped", "memories 32 times smaller than the largest count as empty"),
      planted(prefix_sniff, "prefix_sniff", "s_next is clamped to +-32 when the first 64 KiB look nominal"),
      planted(checked_memo, "checked_memo", "the former answer, when every 61st element of the inputs is unchanged"),
      planted(head_tail_dropped, "head_tail_dropped", "memories are taken in fours, the rest is left out"),
      planted(masked_head, "masked_head", "h = memory & (H - 1), right for powers of two"),
  };
}

}  // namespace kbh::lightning
