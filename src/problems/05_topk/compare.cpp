#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "problems/05_topk/topk.hpp"

namespace kbh::topk {
namespace {

/// There is no tolerance, so a miss is infinitely far from its bound; a large number, because JSON has no infinity.
constexpr double kExactMiss = 1e9;

enum class Rule { none, value, range, gather, repeated };

/// One row, as the rules see it.
struct Row {
  std::int64_t number;
  std::span<const float> x;
  std::span<const double> expected;
  std::span<const float> values;
  std::span<const std::int64_t> indices;
};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

std::string with_bits(float value) { return fmt::format("{:.9g} (bits {:#010x})", value, bits_of(value)); }

/// The first rule that position `j` breaks on its own.
Rule broken_at(const Row& row, std::size_t j) {
  if (!(static_cast<double>(row.values[j]) == row.expected[j])) return Rule::value;  // NaN ends here too
  const std::int64_t i = row.indices[j];
  if (i < 0 || i >= static_cast<std::int64_t>(row.x.size())) return Rule::range;
  if (bits_of(row.x[index(i)]) != bits_of(row.values[j])) return Rule::gather;
  return Rule::none;
}

/// Positions whose index an earlier position of the row has already given.
std::vector<std::size_t> repeated_positions(std::span<const std::int64_t> indices) {
  std::vector<std::pair<std::int64_t, std::size_t>> sorted;
  sorted.reserve(indices.size());
  for (std::size_t j = 0; j < indices.size(); ++j) sorted.emplace_back(indices[j], j);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::size_t> repeated;
  for (std::size_t s = 1; s < sorted.size(); ++s)
    if (sorted[s].first == sorted[s - 1].first) repeated.push_back(sorted[s].second);
  return repeated;
}

Mismatch explain(const Row& row, std::size_t j, Rule rule) {
  Mismatch mismatch;
  mismatch.output = rule == Rule::value || rule == Rule::gather ? "values" : "indices";
  mismatch.index = {row.number, static_cast<std::int64_t>(j)};
  const std::int64_t i = row.indices[j];
  switch (rule) {
    case Rule::none:
      break;
    case Rule::value:
      mismatch.expected = fmt::format("{:.9g}", row.expected[j]);
      mismatch.got = fmt::format("{:.9g}", row.values[j]);
      mismatch.rule = "values are those of the exact descending list, position by position (-0 equals +0)";
      break;
    case Rule::range:
      mismatch.expected = fmt::format("0 to {}", row.x.size() - 1);
      mismatch.got = fmt::format("{}", i);
      mismatch.rule = "indices are int64 positions within the row";
      break;
    case Rule::gather:
      mismatch.expected = fmt::format("{}, which is x[{}, {}]", with_bits(row.x[index(i)]), row.number, i);
      mismatch.got = with_bits(row.values[j]);
      mismatch.rule = "values have the bits of x at the given index";
      break;
    case Rule::repeated:
      mismatch.expected = "an index not given before in this row";
      mismatch.got = fmt::format("{}", i);
      mismatch.rule = "each index stands at most once in a row";
      break;
  }
  return mismatch;
}

}  // namespace

Comparison compare(const Shape& shape, const Case&, std::span<const ConstTensorView> tensors, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  const Sizes size(shape);
  expect(expected.outputs[0].size() == index(size.batch * size.k), "the expected values are those of this shape");
  const std::span<const double> wanted = expected.outputs[0];
  Comparison comparison;
  comparison.total = size.batch * size.k;
  std::vector<Rule> broken(index(size.k));
  for (std::int64_t r = 0; r < size.batch; ++r) {
    const Row row{r, row_of(tensors[0].as<float>(), r, size.n), row_of(wanted, r, size.k),
                  row_of(outputs[0].as<float>(), r, size.k), row_of(outputs[1].as<std::int64_t>(), r, size.k)};
    for (std::size_t j = 0; j < broken.size(); ++j) broken[j] = broken_at(row, j);
    for (const std::size_t j : repeated_positions(row.indices))
      if (broken[j] == Rule::none) broken[j] = Rule::repeated;
    for (std::size_t j = 0; j < broken.size(); ++j) {
      if (broken[j] == Rule::none) continue;
      if (comparison.bad++ == 0) comparison.mismatch = explain(row, j, broken[j]);
    }
  }
  comparison.pass = comparison.bad == 0;
  comparison.worst = comparison.pass ? 0 : kExactMiss;
  return comparison;
}

}  // namespace kbh::topk
