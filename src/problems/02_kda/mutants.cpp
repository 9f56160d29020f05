// The wrong kernels that also stand as submissions under redteam/mutants/02_kda.
#include "02_kda/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/02_kda/kda.hpp"

namespace kbh::kda {
namespace {

kbh::Mutant made(kda_wrong::Mutant which, std::string name, std::string about,
                 std::function<bool(const Shape&)> applies = {}) {
  return {std::move(name), std::move(about), std::move(applies),
          host_answer([which](const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
            kda_wrong::run(which, state, inputs, outputs);
          })};
}

/// Some chunk must look farther back than the warmed-up segments of this history do.
std::function<bool(const Shape&)> cuts(std::int64_t history) {
  return [history](const Shape& shape) { return Sizes(shape).chunks() > std::max<std::int64_t>(1, 2 * (history - 1)); };
}

std::vector<kbh::Mutant> blunt() {
  using enum kda_wrong::Mutant;
  return {
      made(zeros, "zeros", "zeros everywhere"),
      made(constant, "constant", "one small number everywhere"),
      made(copy_v, "copy_v", "v handed back"),
      made(swapped_tokens, "swapped_tokens", "neighbouring tokens exchanged"),
      made(no_scale, "no_scale", "K^-1/2 left out"),
      made(scale_of_v, "scale_of_v", "V^-1/2 instead of K^-1/2: equal on every listed shape"),
      made(odd_chunk_dropped, "odd_chunk_dropped", "chunks two at a time; a last odd one stays zero"),
      made(stale, "stale", "the former call's output, where sizes agree"),
      made(checked_memo, "checked_memo", "the former call's output while 512 sampled values agree"),
      made(one_wrong, "one_wrong", "one element, somewhere, off by half of its head's largest"),
  };
}

std::vector<kbh::Mutant> memory() {
  using enum kda_wrong::Mutant;
  return {
      made(history_1, "history_1", "no state from chunk to chunk", cuts(1)),
      made(history_2, "history_2", "every chunk sees the one before it, no more", cuts(2)),
      made(history_4, "history_4", "segments of 3 chunks, warmed up over the 3 before", cuts(4)),
      made(history_8, "history_8", "segments of 7 chunks, warmed up over the 7 before", cuts(8)),
      made(history_16, "history_16", "segments of 15 chunks, warmed up over the 15 before", cuts(16)),
      made(state_fp16, "state_fp16", "the state in fp16 between chunks"),
      made(state_fixed_point, "state_fixed_point", "the state in 16-bit integers of 2^-14"),
      made(values_fp16, "values_fp16", "corrected values and query weights in fp16"),
      made(output_fp16, "output_fp16", "outputs by way of fp16"),
      made(shared_range, "shared_range", "v in 256 steps of one range for all"),
      made(prefix_range, "prefix_range", "v in 256 steps of twice the range of its first 64 KiB"),
      made(small_chunk_skipped, "small_chunk_skipped", "chunks whose v is below 1/16 of the largest give zeros"),
  };
}

std::vector<kbh::Mutant> gates() {
  using enum kda_wrong::Mutant;
  return {
      made(no_decay, "no_decay", "gates left out"),
      made(gate_exclusive, "gate_exclusive", "sums of gates leave out the token's own"),
      made(fades_after_read, "fades_after_read", "keys meet the memory before the token's gate"),
      made(head_gate, "head_gate", "one gate for all channels of a head, their mean"),
      made(bf16_gate, "bf16_gate", "gates rounded to bf16"),
      made(bf16_cumulative_gate, "bf16_cumulative_gate", "sums of gates rounded to bf16"),
      made(gate_clamped, "gate_clamped", "gates below e^-1 taken for e^-1"),
      made(whole_chunk_exp, "whole_chunk_exp", "exp(G_i) times exp(-G_j) over a whole chunk"),
      made(clamped_exp, "clamped_exp", "the same with -G_j limited to 80"),
  };
}

std::vector<kbh::Mutant> delta_rule() {
  using enum kda_wrong::Mutant;
  return {
      made(no_inverse, "no_inverse", "(I + L)^-1 taken for I"),
      made(inverse_1, "inverse_1", "(I + L)^-1 taken for I - L"),
      made(inverse_3, "inverse_3", "(I + L)^-1 as a series up to L^3"),
      made(inverse_7, "inverse_7", "(I + L)^-1 as a series up to L^7"),
      made(neumann_64, "neumann_64", "(I - L)(I + L^2)(I + L^4)... of the whole chunk in tf32"),
      made(neumann_16_bf16, "neumann_16_bf16", "(I - L)(I + L^2)... of 16 x 16 blocks in bf16"),
      made(state_not_corrected, "state_not_corrected", "v' = u: values not corrected by what the state answers"),
      made(no_delta_rule, "no_delta_rule", "values written as they are, times beta"),
      made(strict_queries, "strict_queries", "queries do not see their own token"),
      made(no_beta, "no_beta", "beta taken for 1"),
      made(beta_clamped, "beta_clamped", "beta kept 0.02 away from 0 and 1"),
  };
}

}  // namespace

std::vector<kbh::Mutant> mutants() {
  std::vector<kbh::Mutant> all;
  for (const auto& group : {blunt(), memory(), gates(), delta_rule()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::kda
