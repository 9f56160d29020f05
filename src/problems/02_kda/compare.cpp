// The comparison of o (reference: Bounds in problem.hpp; the bounds stand in cases.cpp).
//
// Group: the 64 tokens of a chunk of one chain, so that a chunk of small amplitude counts as much as any other.
// Scale of an element: max(rms of its row, rms of its chain / 16); the floor keeps rows of pure cancellation from
// having no tolerance. Two cases need another: `fade` falls to 1e-14 of where it began and every row must be right for
// itself (no floor); the property cases fall to nothing at once (1e-30), after a few rows that hold all there is, so
// that the largest element of the chain is the only scale that means something.
#include "problem/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/parallel.hpp"
#include "problems/02_kda/kda.hpp"

namespace kbh::kda {
namespace {

enum class Scale { row_or_chain, row, chain_peak };

Scale scale_of(std::string_view case_name) {
  if (case_name.starts_with("fade")) return Scale::row;
  if (case_name.starts_with("property")) return Scale::chain_peak;
  return Scale::row_or_chain;
}

std::string words_of(Scale scale) {
  switch (scale) {
    case Scale::row_or_chain:
      return "a scales with max(rms of the row, rms of the head / 16); a chunk is the 64 tokens of one head";
    case Scale::row:
      return "a scales with the rms of the row; a chunk is the 64 tokens of one head";
    case Scale::chain_peak:
      return "a scales with the largest magnitude of the head";
  }
  return {};
}

/// Scales and groups of all elements.
struct Map {
  std::vector<double> scale;
  std::vector<std::int32_t> group;
};

/// One chain's share of the map.
void map_chain(const Sizes& size, Scale kind, std::span<const double> expected, std::int64_t chain, Map& map) {
  const std::size_t width = index(size.value_width);
  std::vector<double> rms(index(size.tokens));
  double squares = 0;
  double peak = 0;
  for (std::int64_t t = 0; t < size.tokens; ++t) {
    double row = 0;
    for (const double value : expected.subspan(index(size.row(chain, t)) * width, width)) {
      row += value * value;
      peak = std::max(peak, std::abs(value));
    }
    squares += row;
    rms[index(t)] = std::sqrt(row / static_cast<double>(width));
  }
  const double floor = std::sqrt(squares / static_cast<double>(size.tokens * size.value_width)) / 16;
  for (std::int64_t t = 0; t < size.tokens; ++t) {
    double scale = peak;
    if (kind == Scale::row) scale = rms[index(t)];
    if (kind == Scale::row_or_chain) scale = std::max(rms[index(t)], floor);
    const auto at = static_cast<std::ptrdiff_t>(index(size.row(chain, t)) * width);
    std::fill_n(map.scale.begin() + at, width, scale);
    std::fill_n(map.group.begin() + at, width, static_cast<std::int32_t>(chain * size.chunks() + t / kChunk));
  }
}

}  // namespace

Comparison compare(const Shape& shape, const Case& c, std::span<const ConstTensorView>, const Expected& expected,
                   std::span<const ConstTensorView> outputs) {
  const Sizes size(shape);
  const Scale kind = scale_of(c.name);
  const std::span<const double> wanted = expected.outputs[0];
  Map map{std::vector<double>(wanted.size()), std::vector<std::int32_t>(wanted.size())};
  parallel_for(index(size.chains()), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chain = begin; chain < end; ++chain)
      map_chain(size, kind, wanted, static_cast<std::int64_t>(chain), map);
  });
  return compare_output(outputs[0], wanted, c.bounds,
                        {.scale = map.scale, .group_size = 0, .group_of = map.group, .words = words_of(kind)});
}

}  // namespace kbh::kda
