// Wrong kernels that look right: shortcuts seen in the wild, and blunt ones. Each works on one row where it can.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/philox.hpp"
#include "problems/05_topk/selection.hpp"
#include "problems/05_topk/topk.hpp"

namespace kbh::topk {
namespace {

using Inputs = std::span<const ConstTensorView>;
using Outputs = std::span<const TensorView>;
using Previous = std::span<const std::vector<std::byte>>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kTile = 1024;
constexpr std::int64_t kLanes = 1024;

// ---- one row
// ----------------------------------------------------------------------------------------------------------

struct Row {
  std::int64_t number;
  std::span<const float> x;
  std::span<float> values;
  std::span<std::int64_t> indices;

  [[nodiscard]] std::int64_t n() const { return std::ssize(x); }
  [[nodiscard]] std::int64_t k() const { return std::ssize(values); }
};

template <typename F>
void each_row(const Shape& shape, Inputs inputs, Outputs outputs, F f) {
  const Sizes size(shape);
  for (std::int64_t r = 0; r < size.batch; ++r)
    f(Row{r, row_of(inputs[0].as<float>(), r, size.n), row_of(outputs[0].as<float>(), r, size.k),
          row_of(outputs[1].as<std::int64_t>(), r, size.k)});
}

/// -0 and +0 share a key.
std::uint32_t exact_key(float value) { return ordered_key(value == 0 ? 0.0f : value); }

/// Indices of the `count` candidates with the largest key(value, index); equal keys by ascending index.
template <typename Key, typename Candidate>
std::vector<std::int64_t> largest(std::span<const float> x, std::int64_t count, Key key, Candidate candidate) {
  Largest<std::uint64_t> winners(index(count));
  for (std::int64_t i = 0; i < std::ssize(x); ++i)
    if (candidate(x[index(i)], i))
      winners.offer(std::uint64_t{key(x[index(i)])} << 32 | (0xffffffffu - static_cast<std::uint32_t>(i)));
  std::vector<std::int64_t> indices;
  for (const std::uint64_t winner : winners.descending())
    indices.push_back(static_cast<std::int64_t>(0xffffffffu - static_cast<std::uint32_t>(winner)));
  return indices;
}

bool everything(float, std::int64_t) { return true; }

/// Writes x at `chosen`; places that remain hold what an untouched list holds, (0, 0).
void write(const Row& row, std::span<const std::int64_t> chosen) {
  for (std::size_t j = 0; j < row.values.size(); ++j) {
    row.values[j] = j < chosen.size() ? row.x[index(chosen[j])] : 0.0f;
    row.indices[j] = j < chosen.size() ? chosen[j] : 0;
  }
}

template <typename Key>
void select_by(const Row& row, Key key) {
  write(row, largest(row.x, row.k(), key, everything));
}

template <typename Candidate>
void select_among(const Row& row, Candidate candidate) {
  write(row, largest(row.x, row.k(), exact_key, candidate));
}

void select_exactly(const Row& row) { select_by(row, exact_key); }

/// The best of a candidate list of limited length: what comes after it is full is lost.
template <typename Candidate>
void select_from_list(const Row& row, std::int64_t capacity, Candidate candidate) {
  select_among(row, [&](float value, std::int64_t i) { return candidate(value, i) && capacity-- > 0; });
}

// ---- thresholds
// -------------------------------------------------------------------------------------------------------

/// z with P(N(0, 1) > z) = p.
double normal_quantile_above(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) > p ? low : high) = middle;
  }
  return low;
}

/// The z that 4 k of n normal elements exceed.
double tail_of(std::int64_t n, std::int64_t k) {
  return normal_quantile_above(4 * static_cast<double>(k) / static_cast<double>(n));
}

std::int64_t list_capacity(std::int64_t k) { return 8 * k + 16; }

struct Moments {
  double mean;
  double deviation;
};

Moments moments(std::span<const float> x) {
  double sum = 0;
  double squares = 0;
  for (const float value : x) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const double mean = sum / static_cast<double>(x.size());
  return {mean, std::sqrt(std::max(0.0, squares / static_cast<double>(x.size()) - mean * mean))};
}

void select_above(const Row& row, float threshold) {
  select_from_list(row, list_capacity(row.k()), [=](float value, std::int64_t) { return value > threshold; });
}

void gaussian_threshold(const Row& row) {
  const Moments m = moments(row.x);
  select_above(row, static_cast<float>(m.mean + tail_of(row.n(), row.k()) * m.deviation));
}

void constant_threshold(const Row& row) { select_above(row, static_cast<float>(tail_of(row.n(), row.k()))); }

void sampled_threshold(const Row& row) {
  const auto sample = row.x.first(index(std::min(kTile, row.n())));
  const std::int64_t rank = std::max<std::int64_t>(1, 4 * row.k() * kTile / row.n());
  const float threshold = sample[index(largest(sample, rank, exact_key, everything).back())];
  select_from_list(row, list_capacity(row.k()), [=](float value, std::int64_t) { return value >= threshold; });
}

void row0_threshold(const Shape& shape, Inputs inputs, Outputs outputs) {
  const Sizes size(shape);
  const auto first = row_of(inputs[0].as<float>(), 0, size.n);
  const float threshold = first[index(largest(first, std::min(size.n, 4 * size.k), exact_key, everything).back())];
  each_row(shape, inputs, outputs, [=](const Row& row) { select_above(row, threshold); });
}

void prefix_threshold(const Shape& shape, Inputs inputs, Outputs outputs) {
  const auto x = inputs[0].as<float>();
  const Moments m = moments(x.first(std::min<std::size_t>(8192, x.size() / 2)));
  each_row(shape, inputs, outputs, [=](const Row& row) {
    select_above(row, static_cast<float>(m.mean + tail_of(row.n(), row.k()) * m.deviation));
  });
}

// ---- candidate lists
// --------------------------------------------------------------------------------------------------

void running_list(const Row& row) {
  std::int64_t room = 16 * row.k() + 64;
  std::vector<std::uint32_t> best;  // ascending, at most k
  select_among(row, [&](float value, std::int64_t) {
    const std::uint32_t key = exact_key(value);
    const bool short_of = std::ssize(best) < row.k();
    if ((!short_of && key <= best.front()) || room == 0) return false;
    --room;
    if (!short_of) best.erase(best.begin());
    best.insert(std::lower_bound(best.begin(), best.end(), key), key);
    return true;
  });
}

void capped_candidates(const Row& row) {
  const float kth = row.x[index(largest(row.x, row.k(), exact_key, everything).back())];
  select_from_list(row, 4 * row.k(), [=](float value, std::int64_t) { return value >= kth; });
}

/// Keeps the best `keep` of each group of elements, then selects among those.
template <typename Group>
void best_per_group(const Row& row, std::int64_t groups, std::int64_t keep, Group group) {
  std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> lists(index(groups));
  for (std::int64_t i = 0; i < row.n(); ++i) {
    auto& list = lists[index(group(i))];
    const std::pair<std::uint32_t, std::int64_t> entry{exact_key(row.x[index(i)]), -i};
    if (std::ssize(list) == keep && entry <= list.back()) continue;
    if (std::ssize(list) == keep) list.pop_back();
    list.insert(std::upper_bound(list.begin(), list.end(), entry, std::greater<>()), entry);
  }
  std::vector<bool> kept(index(row.n()));
  for (const auto& list : lists)
    for (const auto& entry : list) kept[index(-entry.second)] = true;
  select_among(row, [&](float, std::int64_t i) { return kept[index(i)]; });
}

auto best_per_lane(std::int64_t lanes, std::int64_t keep) {
  return [=](const Row& row) { best_per_group(row, lanes, keep, [=](std::int64_t i) { return i % lanes; }); };
}

void tile_quarter(const Row& row) {
  best_per_group(row, (row.n() + kTile - 1) / kTile, std::max<std::int64_t>(8, row.k() / 4),
                 [](std::int64_t i) { return i / kTile; });
}

// ---- keys of lower precision, wrong orders
// ----------------------------------------------------------------------------

auto highest_bits(int bits) {
  return [=](const Row& row) { select_by(row, [=](float value) { return exact_key(value) >> (32 - bits); }); };
}

void bf16_values(const Row& row) {
  select_exactly(row);
  for (float& value : row.values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    value = std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
  }
}

/// 24-bit integers over +-range.
std::uint32_t fixed_point_key(float value, float range) {
  const float clamped = std::clamp(value / range, -1.0f, 1.0f - 0x1p-23f);
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(clamped * 0x1p23f) + (1 << 23));
}

void fixed_point(const Row& row) {
  select_by(row, [](float value) { return fixed_point_key(value, 8); });
}

void prefix_range(const Shape& shape, Inputs inputs, Outputs outputs) {
  const auto x = inputs[0].as<float>();
  const auto range = static_cast<float>(8 * moments(x.first(std::min<std::size_t>(8192, x.size() / 2))).deviation);
  each_row(shape, inputs, outputs, [=](const Row& row) {
    select_by(row, [=](float value) { return fixed_point_key(value, std::max(range, 1e-30f)); });
  });
}

void unsigned_bits(const Row& row) {
  select_by(row, [](float value) { return std::bit_cast<std::uint32_t>(value); });
}

void signed_bits(const Row& row) {
  select_by(row, [](float value) { return std::bit_cast<std::uint32_t>(value) ^ 0x80000000u; });
}

void flush_denormals(const Row& row) {
  select_by(row,
            [](float value) { return exact_key(std::abs(value) < std::numeric_limits<float>::min() ? 0.0f : value); });
}

void canonical_zero(const Row& row) {
  select_exactly(row);
  for (float& value : row.values) value += 0.0f;
}

// ---- elements that are never looked at
// --------------------------------------------------------------------------------

auto first_elements(std::int64_t (*count)(std::int64_t n)) {
  return [=](const Row& row) {
    const std::int64_t end = count(row.n());
    select_among(row, [=](float, std::int64_t i) { return i < end; });
  };
}

void first_skipped(const Row& row) {
  select_among(row, [](float, std::int64_t i) { return i > 0; });
}

void tile_end_missed(const Row& row) {
  select_among(row, [](float, std::int64_t i) { return i % kTile != kTile - 1; });
}

void zero_padding(const Row& row) {
  select_among(row, [](float value, std::int64_t) { return value > 0; });
}

void minus_infinity_skipped(const Row& row) {
  select_among(row, [](float value, std::int64_t) { return value > -kInfinity; });
}

void finite_only(const Row& row) {
  select_among(row, [](float value, std::int64_t) { return std::isfinite(value); });
}

void misses_one(const Row& row) {
  std::vector<std::int64_t> chosen = largest(row.x, row.k() + 1, exact_key, everything);
  chosen.erase(chosen.end() - 2);
  write(row, chosen);
}

// ---- right values, wrong answer
// ---------------------------------------------------------------------------------------

void copy_prefix(const Row& row) {
  std::vector<std::int64_t> chosen(index(row.k()));
  std::iota(chosen.begin(), chosen.end(), std::int64_t{0});
  write(row, chosen);
}

void constant(const Row& row) {
  copy_prefix(row);
  std::fill(row.values.begin(), row.values.end(), 1.0f);
}

void zeros(const Row& row) { write(row, {}); }

void unsorted(const Row& row) {
  select_exactly(row);
  std::swap(row.values.front(), row.values.back());
  std::swap(row.indices.front(), row.indices.back());
}

void repeats_best(const Row& row) {
  select_exactly(row);
  row.values.back() = row.values.front();
  row.indices.back() = row.indices.front();
}

void index_by_value(const Row& row) {
  select_exactly(row);
  for (std::size_t j = 0; j < row.values.size(); ++j)
    row.indices[j] = std::find(row.x.begin(), row.x.end(), row.values[j]) - row.x.begin();
}

void index_from_one(const Row& row) {
  select_exactly(row);
  for (std::int64_t& i : row.indices) ++i;
}

void flat_index(const Row& row) {
  select_exactly(row);
  for (std::int64_t& i : row.indices) i += row.number * row.n();
}

void permuted_rows(const Shape& shape, Inputs inputs, Outputs outputs) {
  const Sizes size(shape);
  each_row(shape, inputs, outputs, select_exactly);
  const auto values = outputs[0].as<float>();
  const auto indices = outputs[1].as<std::int64_t>();
  std::rotate(values.begin(), values.begin() + size.k, values.end());
  std::rotate(indices.begin(), indices.begin() + size.k, indices.end());
}

void one_wrong(const Shape& shape, Inputs inputs, Outputs outputs) {
  const Sizes size(shape);
  each_row(shape, inputs, outputs, select_exactly);
  const auto values = outputs[0].as<float>();
  // A place that differs from draw to draw, but not from run to run.
  const std::uint32_t drawn = philox::words(std::bit_cast<std::uint32_t>(values.back()), std::uint64_t{0}).v[0];
  const auto place = philox::below(drawn, static_cast<std::uint32_t>(values.size()));
  const auto row = row_of(inputs[0].as<float>(), place / size.k, size.n);
  // Another element of the row, as a lost race would leave it; where all are equal, a neighbouring float.
  const auto start = static_cast<std::int64_t>(philox::below(drawn * 31, static_cast<std::uint32_t>(size.n)));
  for (std::int64_t step = 0; step < size.n; ++step) {
    const std::int64_t i = (start + step) % size.n;
    if (row[index(i)] == values[place]) continue;
    values[place] = row[index(i)];
    outputs[1].as<std::int64_t>()[place] = i;
    return;
  }
  values[place] = std::isinf(values[place]) ? 0.0f : std::nextafter(values[place], kInfinity);
}

// ---- answers kept from before, knowledge of the test
// ------------------------------------------------------------------

bool restore(Outputs outputs, Previous previous) {
  if (previous.empty()) return false;
  for (std::size_t o = 0; o < outputs.size(); ++o) std::copy(previous[o].begin(), previous[o].end(), outputs[o].data);
  return true;
}

void stale(const Shape& shape, Inputs inputs, Outputs outputs, Previous previous) {
  if (!restore(outputs, previous)) each_row(shape, inputs, outputs, select_exactly);
}

void checked_memo(const Shape& shape, Inputs inputs, Outputs outputs, Previous previous) {
  bool holds = restore(outputs, previous);
  if (holds)
    each_row(shape, inputs, outputs, [&](const Row& row) {
      for (std::size_t j = 0; j < row.values.size(); ++j)
        holds = holds && std::bit_cast<std::uint32_t>(row.values[j]) ==
                             std::bit_cast<std::uint32_t>(row.x[index(row.indices[j])]);
    });
  if (!holds) each_row(shape, inputs, outputs, select_exactly);
}

void keeps_old_winners(const Shape& shape, Inputs inputs, Outputs outputs, Previous previous) {
  if (!restore(outputs, previous)) return each_row(shape, inputs, outputs, select_exactly);
  each_row(shape, inputs, outputs, [](const Row& row) {
    std::vector<std::pair<float, std::int64_t>> merged;
    for (std::size_t j = 0; j < row.values.size(); ++j) merged.emplace_back(row.values[j], row.indices[j]);
    for (const std::int64_t i : largest(row.x, row.k(), exact_key, everything))
      if (std::find(row.indices.begin(), row.indices.end(), i) == row.indices.end())
        merged.emplace_back(row.x[index(i)], i);
    std::stable_sort(merged.begin(), merged.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t j = 0; j < row.values.size(); ++j) std::tie(row.values[j], row.indices[j]) = merged[j];
  });
}

void public_scales(const Shape& shape, Inputs inputs, Outputs outputs) {
  float largest_magnitude = 0;
  for (const float value : inputs[0].as<float>()) largest_magnitude = std::max(largest_magnitude, std::abs(value));
  bool known = false;
  for (const float scale : {1e-4f, 1.0f, 1e3f})
    known = known || (largest_magnitude > 2 * scale && largest_magnitude < 8 * scale);
  each_row(shape, inputs, outputs, [=](const Row& row) { known ? select_exactly(row) : copy_prefix(row); });
}

void listed_only(const Shape& shape, Inputs inputs, Outputs outputs) {
  constexpr std::array<std::array<std::int64_t, 2>, 5> kPublic = {
      {{131072, 64}, {8192, 8}, {16384, 32}, {12000, 16}, {4096, 1}}};
  const Sizes size(shape);
  const bool known = std::find(kPublic.begin(), kPublic.end(), std::array{size.n, size.k}) != kPublic.end();
  each_row(shape, inputs, outputs, [=](const Row& row) { known ? select_exactly(row) : copy_prefix(row); });
}

// ---- the list
// ---------------------------------------------------------------------------------------------------------

using Applies = bool (*)(const Sizes&);

Mutant whole(std::string name, std::string about, Applies applies, Answer run) {
  return {std::move(name), std::move(about), [applies](const Shape& shape) { return applies(Sizes(shape)); },
          std::move(run)};
}

template <typename OnTensors>
Answer without_memory(OnTensors run) {
  return [run](const Shape& shape, Inputs inputs, Outputs outputs, Previous) { run(shape, inputs, outputs); };
}

template <typename OnRow>
Mutant per_row(std::string name, std::string about, Applies applies, OnRow run) {
  return whole(std::move(name), std::move(about), applies,
               without_memory([run](const Shape& shape, Inputs inputs, Outputs outputs) {
                 each_row(shape, inputs, outputs, run);
               }));
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
      per_row("zeros", "outputs are 0", always, zeros),
      per_row("constant", "values are 1, indices 0..k-1", always, constant),
      per_row("copy_prefix", "the first k elements, in their own order", some_lose, copy_prefix),
      whole("permuted_rows", "each row's answer stands in another row", several_rows, without_memory(permuted_rows)),
      per_row("flat_index", "indices count from the start of the tensor", several_rows, flat_index),
      per_row("index_from_one", "indices count from 1", always, index_from_one),
      per_row(
          "index_by_value", "an index is looked up by value: the first of equals, again and again",
          [](const Sizes& s) { return s.k >= 2 && s.n >= 64; }, index_by_value),
      per_row("repeats_best", "the last place repeats the first", several_winners, repeats_best),
      per_row("unsorted", "right set, first and last exchanged", several_winners, unsorted),
      per_row("misses_one", "the k-th is missing, the next one stands there", some_lose, misses_one),
      whole("one_wrong", "one element at a random place is another one", always, without_memory(one_wrong)),
      whole("stale", "the former call's answer", always, stale),
      whole(
          "checked_memo", "the former call's answer while its winners still stand in the input",
          [](const Sizes& s) { return s.n >= 16 * s.k; }, checked_memo),
      whole("keeps_old_winners", "the former winners stay candidates for ever", always, keeps_old_winners),
      whole("listed_only", "right for the public shapes alone", long_rows, without_memory(listed_only)),
      whole("public_scales", "right where the largest element is that of a public scale", long_rows,
            without_memory(public_scales)),
  };
}

std::vector<Mutant> shortcut_mutants() {
  const Applies tiled = [](const Sizes& s) { return s.n > kTile; };
  return {
      per_row("gaussian_threshold", "candidates above mean + z sigma of the row, a list of 8 k", sparse,
              gaussian_threshold),
      per_row("constant_threshold", "candidates above the tail of N(0, 1), a list of 8 k", sparse, constant_threshold),
      per_row("sampled_threshold", "threshold from the first 1024 elements, a list of 8 k", sparse, sampled_threshold),
      whole(
          "row0_threshold", "threshold from row 0 for all rows, a list of 8 k",
          [](const Sizes& s) { return several_rows(s) && sparse(s); }, without_memory(row0_threshold)),
      whole(
          "prefix_threshold", "threshold from the deviation of the first 32 KiB, a list of 8 k",
          [](const Sizes& s) { return several_rows(s) && sparse(s); }, without_memory(prefix_threshold)),
      per_row("running_list", "everything above the running k-th best, a list of 16 k", sparse, running_list),
      per_row(
          "capped_candidates", "everything not below the k-th value, a list of 4 k",
          [](const Sizes& s) { return s.k >= 8 && s.n >= 64 * s.k; }, capped_candidates),
      per_row("lane_best_1", "1024 threads keep their best", crowded_lanes<kLanes, 1>, best_per_lane(kLanes, 1)),
      per_row("lane_best_2", "1024 threads keep their best 2", crowded_lanes<kLanes, 2>, best_per_lane(kLanes, 2)),
      per_row("lane_best_4", "1024 threads keep their best 4", crowded_lanes<kLanes, 4>, best_per_lane(kLanes, 4)),
      per_row("lane_best_2_of_256", "256 threads keep their best 2", crowded_lanes<256, 2>, best_per_lane(256, 2)),
      per_row(
          "tile_quarter", "tiles of 1024 keep max(8, k/4)", [](const Sizes& s) { return s.k > 8 && s.n > kTile; },
          tile_quarter),
      per_row(
          "tile_end_missed", "the last element of each tile of 1024 is skipped",
          [](const Sizes& s) { return s.k >= 8 && s.n > kTile + 1; }, tile_end_missed),
      per_row("last_tile_dropped", "the last tile of 1024 is skipped", tiled,
              first_elements([](std::int64_t n) { return (n - 1) / kTile * kTile; })),
      per_row(
          "ragged_tail_dropped", "n mod 1024 elements at the end are skipped",
          [](const Sizes& s) { return s.n > kTile && s.n % kTile != 0; },
          first_elements([](std::int64_t n) { return n / kTile * kTile; })),
      per_row(
          "vector_tail_dropped", "n mod 4 elements at the end are skipped",
          [](const Sizes& s) { return s.n > 4 && s.n % 4 != 0; },
          first_elements([](std::int64_t n) { return n / 4 * 4; })),
      per_row("first_skipped", "loops start at 1", always, first_skipped),
      per_row("zero_padding", "lists start with 0", always, zero_padding),
      per_row("keys_16_bit", "only the 16 highest bits are compared", long_rows, highest_bits(16)),
      per_row("keys_20_bit", "only the 20 highest bits are compared", long_rows, highest_bits(20)),
      per_row("bf16_values", "values rounded to bf16", long_rows, bf16_values),
      per_row("fixed_point", "compares 24-bit integers over +-8", long_rows, fixed_point),
      whole("prefix_range", "compares 24-bit integers over a range from the first 32 KiB", long_rows,
            without_memory(prefix_range)),
      per_row("unsigned_bits", "float bits compared as unsigned integers", long_rows, unsigned_bits),
      per_row("signed_bits", "float bits compared as signed integers", long_rows, signed_bits),
      per_row("flush_denormals", "denormals compare as 0", long_rows, flush_denormals),
      per_row("canonical_zero", "-0 is returned as +0", always, canonical_zero),
      per_row("minus_infinity_skipped", "-inf marks an empty place", several_winners, minus_infinity_skipped),
      per_row("finite_only", "infinities are left out", always, finite_only),
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
