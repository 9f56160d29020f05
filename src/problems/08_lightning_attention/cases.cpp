#include "problems/08_lightning_attention/fills.hpp"

namespace kbh::lightning {
namespace {

using Fill = std::function<void(const Data&)>;
using Names = std::vector<std::string>;

// Bounds of o (numerics: one bf16 rounding of an fp32 sum).
//   frobenius .0035: rounding to bf16 alone is .00166, whatever the data; nothing else is visible beside it.
//   r 2^-7: one rounding to nearest is 2^-8 |o|, times 2.
//   a .004: operands are not rounded, so an honest kernel needs 1e-5 (128 fp32 additions, measured); s_next read as
//   bf16
//     needs .0085 (5 deviations of .0017).
constexpr Bounds kRead{.a = 0.004, .r = 0x1p-7, .frobenius = 0.0035};
// Where o is 2^-8 of its norm product, .004 of that would be everything: fp32 needs 1e-5 of the norm product still.
constexpr Bounds kReadOrthogonal{.a = 0x1p-13, .r = 0x1p-7, .frobenius = 0.0035};
// Every product and partial sum is an integer below 2^24, in any order and also as decay (q s) + (q.k) v.
constexpr Bounds kExact{.exact = true};

Case single(std::string name, std::string about, Fill fill, Names kills) {
  Case c;
  c.name = std::move(name);
  c.about = std::move(about);
  c.fill = [fill = std::move(fill)](const DrawKey& key, std::span<const TensorView> tensors) {
    fill(Data(key, tensors));
  };
  c.bounds = kRead;
  c.kills = std::move(kills);
  return c;
}

Case bounded(Bounds bounds, Case c) {
  c.bounds = bounds;
  return c;
}

bool several_memories(const Shape& shape) { return Sizes(shape).memories() >= 3; }

Case over_several(Case c) {
  c.applies = several_memories;
  return c;
}

std::vector<Case> decay_cases() {
  Case first = single("nominal", "standard normal, the first layer's slopes: the one that is timed", nominal,
                      {"zeros", "constant", "copies_memory", "no_decay", "decays_new_token", "neighbours_decay",
                       "reads_before_writing", "transposed_update", "state_tf32", "update_bf16", "decay_bf16",
                       "last_row_dropped", "permuted_heads", "stale", "one_wrong"});
  first.nominal = true;
  return {
      first,
      single("random_layer", "slopes of a random layer: decays known from the head's number", random_layer,
             {"zeros", "decay_from_index", "remembered_decay"}),
      single("near_one", "decay 1 - 2^-8 to 1 - 2^-15: forgetting that is left out", near_one,
             {"no_decay", "near_one_is_one", "decay_from_index", "decay_bf16"}),
      single("no_decay", "decay exactly 1: nothing is forgotten", no_decay, {"zeros", "decay_from_index", "one_wrong"}),
      over_several(single("strong_decay", "decay e^-5 to e^-80 of memories up to 1e35: products cut off", strong_decay,
                          {"drops_old_memory", "no_decay"})),
  };
}

std::vector<Case> amplitude_cases() {
  return {
      single("large_memory", "s x 2^12, k and v x 2^-3: small updates of a large memory",
             [](const Data& d) {
               scaled(d, {1, 0x1p-3f, 0x1p-3f, 0x1p12f});
             },
             {"small_update_skipped", "clamped", "state_tf32"}),
      single("small_memory", "s x 2^-20: what is left of the past beside a large new token",
             [](const Data& d) {
               scaled(d, {1, 1, 1, 0x1p-20f});
             },
             {"small_memory_skipped", "state_tf32"}),
      single("random_scale", "each tensor at a scale of its own, continuous: recognition of known scales", random_scale,
             {"one_wrong", "state_tf32"}),
      over_several(single("mixed_memories", "an amplitude of 2^-6 to 2^6 for each memory: the smallest left out",
                          [](const Data& d) { mixed(d, Block::memory); }, {"smallest_skipped", "one_wrong"})),
      single("mixed_rows", "an amplitude for each 16 rows: one scale for a whole memory",
             [](const Data& d) { mixed(d, Block::rows); }, {"one_wrong", "clamped", "state_tf32"}),
      single("mixed_columns", "an amplitude for each 16 columns: one scale for a whole memory",
             [](const Data& d) { mixed(d, Block::columns); }, {"one_wrong", "clamped", "state_tf32"}),
      over_several(single("prefix_nominal", "the first 64 KiB nominal, the rest x 8: a look at the beginning only",
                          [](const Data& d) { prefix(d, 1, 8); }, {"prefix_sniff"})),
      over_several(single("prefix_large", "the first 64 KiB x 8, the rest nominal: a look at the beginning only",
                          [](const Data& d) { prefix(d, 8, 1); }, {"one_wrong"})),
      single("outliers", "one element of s in 256 x 2^10: clamps, half precision", outliers, {"clamped", "state_tf32"}),
  };
}

std::vector<Case> structure_cases() {
  return {
      single("cancelling", "the new token takes back the memory but for one per cent: roundings before the sum",
             cancelling, {"update_bf16", "decay_bf16", "state_tf32", "no_decay"}),
      bounded(kReadOrthogonal,
              single("orthogonal_query", "q orthogonal to k, s x 2^-8: what is read is small beside what is stored",
                     orthogonal_query, {"reads_bf16", "reads_tf32", "one_wrong"})),
      single("positive", "one sign everywhere, as after SiLU: sums that only grow", positive,
             {"zeros", "reads_before_writing", "one_wrong"}),
      bounded(kExact, single("integers", "integers and decays 1 and 1/2: one right bit pattern", integers,
                             {"reads_truncated", "reads_tf32", "reads_bf16", "state_tf32", "last_row_dropped",
                              "decay_from_index", "one_wrong"})),
      single("one_hot", "k and q with one channel each: rows that are skipped because their key is 0", one_hot,
             {"zero_key_skips_decay", "transposed_update", "no_decay"}),
      single("empty_memory", "s = 0, the first token: nothing but the update", empty_memory,
             {"zeros", "copies_memory", "reads_before_writing", "stale"}),
      single("sparse_memory", "most rows of s are 0: rows taken for an empty memory", sparse_memory,
             {"first_row_decides", "no_decay"}),
  };
}

std::vector<Case> change_cases() {
  Case chained = single("chained", "16 tokens, s_next of one call is s of the next, new q, k, v: stale memories",
                        nominal, {"stale", "no_decay", "copies_memory", "one_wrong"});
  chained.kind = CaseKind::repeated;
  chained.calls = 16;
  chained.change = [](const DrawKey& key, int step, std::span<const TensorView> tensors, const Expected& former) {
    next_token(Data(key, tensors), step, former);
  };
  Case in_place = single("in_place", "the same buffers, 1 to 7 elements change: of every input, then of one at a time",
                         nominal, {"stale", "checked_memo", "remembered_decay"});
  in_place.kind = CaseKind::repeated;
  in_place.calls = 7;
  in_place.change = [](const DrawKey& key, int step, std::span<const TensorView> tensors, const Expected&) {
    change_some(Data(key, tensors), step);
  };
  return {chained, in_place};
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& group : {decay_cases(), amplitude_cases(), structure_cases(), change_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kbh::lightning
