// Which wrong kernels there are and where each is a temptation; their code stands in redteam/mutants/05_topk/wrong.hpp.
#include "05_topk/wrong.hpp"
#include "problem/host_answer.hpp"
#include "problems/05_topk/topk.hpp"

namespace kbh::topk {
namespace {

namespace wrong = topk_wrong;

using Applies = bool (*)(const Sizes&);

Mutant mutant(std::string name, std::string about, Applies applies, wrong::Kernel kernel) {
  return {std::move(name), std::move(about), [applies](const Shape& shape) { return applies(Sizes(shape)); },
          host_answer([kernel](const kbh_tensor*, const kbh_tensor* inputs, const kbh_tensor* outputs) {
            kernel(wrong::Call(inputs, outputs));
          })};
}

bool always(const Sizes&) { return true; }
bool several_rows(const Sizes& s) { return s.batch >= 2; }
bool several_winners(const Sizes& s) { return s.k >= 2; }
bool some_lose(const Sizes& s) { return s.k < s.n; }
bool long_rows(const Sizes& s) { return s.n >= 1024; }
/// Few winners among many: where a threshold is a tempting shortcut.
bool sparse(const Sizes& s) { return s.n >= 2048 && s.n >= 128 * s.k; }

/// A lane may hold more winners than it keeps.
template <std::int64_t Lanes, std::int64_t Keep>
bool crowded_lanes(const Sizes& s) {
  return s.k > Keep && s.n > 6 * Lanes;
}

std::vector<Mutant> blunt_mutants() {
  return {
      mutant("zeros", "outputs are 0", always, wrong::zeros),
      mutant("constant", "values are 1, indices 0..k-1", always, wrong::constant),
      mutant("copy_prefix", "the first k elements, in their own order", some_lose, wrong::copy_prefix),
      mutant("permuted_rows", "each row's answer stands in another row", several_rows, wrong::permuted_rows),
      mutant("flat_index", "indices count from the start of the tensor", several_rows, wrong::flat_index),
      mutant("index_from_one", "indices count from 1", always, wrong::index_from_one),
      mutant(
          "index_by_value", "an index is looked up by value: the first of equals, again and again",
          [](const Sizes& s) { return s.k >= 2 && s.n >= 64; }, wrong::index_by_value),
      mutant("repeats_best", "the last place repeats the first", several_winners, wrong::repeats_best),
      mutant("unsorted", "right set, first and last exchanged", several_winners, wrong::unsorted),
      mutant("misses_one", "the k-th is missing, the next one stands there", some_lose, wrong::misses_one),
      mutant("one_wrong", "one element at a random place is another one", always, wrong::one_wrong),
      mutant("stale", "the former call's answer", always, wrong::stale),
      mutant(
          "checked_memo", "the former call's answer while its winners still stand in the input",
          [](const Sizes& s) { return s.n >= 16 * s.k; }, wrong::checked_memo),
      mutant("keeps_old_winners", "the former winners stay candidates for ever", always, wrong::keeps_old_winners),
      mutant("listed_only", "right for the public shapes alone", long_rows, wrong::listed_only),
      mutant("public_scales", "right where the largest element is that of a public scale", long_rows,
             wrong::public_scales),
  };
}

std::vector<Mutant> shortcut_mutants() {
  const Applies tiled = [](const Sizes& s) { return s.n > wrong::kTile; };
  return {
      mutant("gaussian_threshold", "candidates above mean + z sigma of the row, a list of 8 k", sparse,
             wrong::gaussian_threshold),
      mutant("constant_threshold", "candidates above the tail of N(0, 1), a list of 8 k", sparse,
             wrong::constant_threshold),
      mutant("sampled_threshold", "threshold from the first 1024 elements, a list of 8 k", sparse,
             wrong::sampled_threshold),
      mutant(
          "row0_threshold", "threshold from row 0 for all rows, a list of 8 k",
          [](const Sizes& s) { return several_rows(s) && sparse(s); }, wrong::row0_threshold),
      mutant(
          "prefix_threshold", "threshold from the deviation of the first 32 KiB, a list of 8 k",
          [](const Sizes& s) { return several_rows(s) && sparse(s); }, wrong::prefix_threshold),
      mutant("running_list", "everything above the running k-th best, a list of 16 k", sparse, wrong::running_list),
      mutant(
          "capped_candidates", "everything not below the k-th value, a list of 4 k",
          [](const Sizes& s) { return s.k >= 8 && s.n >= 64 * s.k; }, wrong::capped_candidates),
      mutant("lane_best_1", "1024 threads keep their best", crowded_lanes<wrong::kLanes, 1>, wrong::lane_best_1),
      mutant("lane_best_2", "1024 threads keep their best 2", crowded_lanes<wrong::kLanes, 2>, wrong::lane_best_2),
      mutant("lane_best_4", "1024 threads keep their best 4", crowded_lanes<wrong::kLanes, 4>, wrong::lane_best_4),
      mutant("lane_best_2_of_256", "256 threads keep their best 2", crowded_lanes<256, 2>, wrong::lane_best_2_of_256),
      mutant(
          "tile_quarter", "tiles of 1024 keep max(8, k/4)",
          [](const Sizes& s) { return s.k > 8 && s.n > wrong::kTile; }, wrong::tile_quarter),
      mutant(
          "tile_end_missed", "the last element of each tile of 1024 is skipped",
          [](const Sizes& s) { return s.k >= 8 && s.n > wrong::kTile + 1; }, wrong::tile_end_missed),
      mutant("last_tile_dropped", "the last tile of 1024 is skipped", tiled, wrong::last_tile_dropped),
      mutant(
          "ragged_tail_dropped", "n mod 1024 elements at the end are skipped",
          [](const Sizes& s) { return s.n > wrong::kTile && s.n % wrong::kTile != 0; }, wrong::ragged_tail_dropped),
      mutant(
          "vector_tail_dropped", "n mod 4 elements at the end are skipped",
          [](const Sizes& s) { return s.n > 4 && s.n % 4 != 0; }, wrong::vector_tail_dropped),
      mutant("first_skipped", "loops start at 1", always, wrong::first_skipped),
      mutant("zero_padding", "lists start with 0", always, wrong::zero_padding),
      mutant("keys_16_bit", "only the 16 highest bits are compared", long_rows, wrong::keys_16_bit),
      mutant("keys_20_bit", "only the 20 highest bits are compared", long_rows, wrong::keys_20_bit),
      mutant("bf16_values", "values rounded to bf16", long_rows, wrong::bf16_values),
      mutant("fixed_point", "compares 24-bit integers over +-8", long_rows, wrong::fixed_point),
      mutant("prefix_range", "compares 24-bit integers over a range from the first 32 KiB", long_rows,
             wrong::prefix_range),
      mutant("unsigned_bits", "float bits compared as unsigned integers", long_rows, wrong::unsigned_bits),
      mutant("signed_bits", "float bits compared as signed integers", long_rows, wrong::signed_bits),
      mutant("flush_denormals", "denormals compare as 0", long_rows, wrong::flush_denormals),
      mutant("canonical_zero", "-0 is returned as +0", always, wrong::canonical_zero),
      mutant("minus_infinity_skipped", "-inf marks an empty place", several_winners, wrong::minus_infinity_skipped),
      mutant("finite_only", "infinities are left out", always, wrong::finite_only),
  };
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> all = blunt_mutants();
  const std::vector<Mutant> shortcuts = shortcut_mutants();
  all.insert(all.end(), shortcuts.begin(), shortcuts.end());
  return all;
}

}  // namespace kbh::topk
