#include "06_moe_swiglu/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/06_moe_swiglu/moe.hpp"

namespace kbh::moe {
namespace {

using Applies = bool (*)(const Sizes&);

bool several_rows(const Sizes& size) { return size.rows() >= 2; }
bool several_experts(const Sizes& size) { return size.experts >= 2; }
/// One expert can have 128 rows more than the average.
bool crowding(const Sizes& size) { return size.rows() - size.rows() / size.experts > 128; }

Mutant mutant(std::string name, std::string about, Wrong wrong, Applies applies = nullptr) {
  Mutant m;
  m.name = std::move(name);
  m.about = std::move(about);
  if (applies) m.applies = [applies](const Shape& shape) { return applies(Sizes(shape)); };
  m.run = host_answer([wrong](const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
    moe::run(wrong, state, inputs, outputs);
  });
  return m;
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      mutant("zeros", "out is 0", Wrong::zeros),
      mutant("constant", "out is 0.001", Wrong::constant),
      mutant("copy_input", "out is the beginning of hidden", Wrong::copy_input),
      mutant("permuted_rows", "each row's answer stands in the row before", Wrong::permuted_rows, several_rows),
      mutant("last_k_dropped", "the sums end one term early", Wrong::last_k_dropped),
      mutant("k_ragged", "H mod 16 terms are left out", Wrong::k_ragged),
      mutant("column_ragged", "I mod 16 columns are left out", Wrong::column_ragged),
      mutant("last_expert_dropped", "the last expert's rows are left out", Wrong::last_expert_dropped),
      mutant("neighbour_expert", "each row meets the next expert", Wrong::neighbour_expert, several_experts),
      mutant("boundary_row", "an expert's last row meets the next expert", Wrong::boundary_row, several_experts),
      mutant("balanced_only", "expert_offsets are not read: equal shares", Wrong::balanced_only, several_experts),
      mutant("capacity", "an expert takes the average + 128 rows and drops the others", Wrong::capacity, crowding),
      mutant("cached_routing", "expert_offsets of the first call of this size", Wrong::cached_routing, several_experts),
      mutant("first_owner_search", "a row's expert is searched among beginnings: empty experts win ties",
             Wrong::first_owner_search, several_experts),
      mutant("tile_by_first_row", "16 rows meet the expert of the first", Wrong::tile_by_first_row, several_experts),
      mutant("row_tail_dropped", "an expert's last rows mod 16 are left out", Wrong::row_tail_dropped),
      mutant("relu", "relu instead of silu", Wrong::relu),
      mutant("swapped", "silu of up instead of gate", Wrong::swapped),
      mutant("gelu", "gelu instead of silu", Wrong::gelu),
      mutant("linear_sigmoid", "the sigmoid is 1/2 + g/4", Wrong::linear_sigmoid),
      mutant("clamped_sigmoid", "the sigmoid is 1/2 + g/4, between 0 and 1", Wrong::clamped_sigmoid),
      mutant("clamped_swiglu", "gate and up are clamped at 7, as some models want it", Wrong::clamped_swiglu),
      mutant("overflowing_silu", "silu as g e^g / (1 + e^g)", Wrong::overflowing_silu),
      mutant("fp8_weights", "weights in e4m3", Wrong::fp8_weights),
      mutant("bf16_accumulation", "accumulators are rounded to bf16 after every 16 terms", Wrong::bf16_accumulation),
      mutant("fp16_accumulation", "accumulators are rounded to fp16 after every 16 terms", Wrong::fp16_accumulation),
      mutant("fp16_output", "out passes through fp16", Wrong::fp16_output),
      mutant("first_weights", "weights of the first call of this size", Wrong::first_weights),
      mutant("quiet_skipped", "tiles 2^-5 below the largest element are taken for 0", Wrong::quiet_skipped),
      mutant("prefix_range", "hidden is clipped to a range found in its first 64 KiB", Wrong::prefix_range),
      mutant("public_scales", "weights in e4m3 unless hidden has a scale of the public cases", Wrong::public_scales),
      mutant("stale", "the former call's answer", Wrong::stale),
      mutant("checked_memo", "the former call's answer where offsets and a few elements are the same",
             Wrong::checked_memo),
      mutant("one_wrong", "one element at a random place is wrong by four tolerances", Wrong::one_wrong),
  };
}

}  // namespace kbh::moe
