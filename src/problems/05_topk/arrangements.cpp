#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "problems/05_topk/fills.hpp"

namespace kbh::topk {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kTile = 1024;

/// A ragged tile at the end is left out: it may not hold k winners.
std::int64_t whole_tiles(std::int64_t n) { return std::max<std::int64_t>(1, n / kTile); }

/// Random values above all of the nominal data (|z| < 6.3).
void plant_winners(std::span<float> row, std::span<const std::int64_t> positions, Random& random) {
  for (const std::int64_t i : positions) row[index(i)] = random.uniform(10, 11);
}

/// A monotone row that crosses 0 at a random place. Steps are random; where fp32 runs out of bits neighbours are equal.
void monotone(const Data& data, bool up) {
  Random random = data.random("scale");
  const auto n = static_cast<std::size_t>(data.size.n);
  std::vector<float> scale;
  std::vector<float> zero;
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    scale.push_back(random.log_uniform(-12, 4));
    zero.push_back(random.uniform() * static_cast<float>(n));
  }
  fill_each(data.x, data.stream(), [&](const philox::Words& words, std::size_t i) {
    const std::size_t rank = up ? i % n : n - 1 - i % n;
    const float place = static_cast<float>(rank) + philox::uniform(words.v[0]);
    return (place - zero[i / n]) * scale[i / n];
  });
}

}  // namespace

std::vector<std::int64_t> random_positions(Random& random, std::int64_t n, std::int64_t count) {
  // Floyd's sampling, then a shuffle: cost follows `count`, not `n`.
  std::unordered_set<std::int64_t> taken;
  std::vector<std::int64_t> positions;
  for (std::int64_t last = n - count; last < n; ++last) {
    const std::int64_t drawn = random.below(last + 1);
    positions.push_back(taken.insert(drawn).second ? drawn : last);
    taken.insert(positions.back());
  }
  for (std::int64_t i = count - 1; i > 0; --i) std::swap(positions[index(i)], positions[index(random.below(i + 1))]);
  return positions;
}

void ascending(const Data& data) { monotone(data, true); }
void descending(const Data& data) { monotone(data, false); }

void infinity_once(const Data& data) {
  nominal(data);
  Random random = data.random("places");
  for (std::int64_t r = 0; r < data.size.batch; ++r) data.row(r)[index(random.below(data.size.n))] = kInfinity;
}

void many_infinities(const Data& data) {
  nominal(data);
  Random random = data.random("places");
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    const std::int64_t count = std::min(data.size.n, data.size.k + random.between(1, 32));
    for (const std::int64_t i : random_positions(random, data.size.n, count)) data.row(r)[index(i)] = kInfinity;
  }
}

void half_minus_infinity(const Data& data) {
  // The lowest bit of a normal is as good as a coin.
  nominal(data);
  for (float& value : data.x)
    if ((philox::to_bits(value) & 1u) != 0) value = -kInfinity;
}

void mostly_minus_infinity(const Data& data) {
  Random random = data.random("places");
  std::fill(data.x.begin(), data.x.end(), -kInfinity);
  for (std::int64_t r = 0; r < data.size.batch; ++r)
    for (const std::int64_t i : random_positions(random, data.size.n, data.size.k / 2))
      data.row(r)[index(i)] = random.uniform(-1, 1);
}

void one_tile(const Data& data) {
  nominal(data);
  Random random = data.random("places");
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    const std::int64_t begin = random.below(whole_tiles(data.size.n)) * kTile;
    const std::int64_t length = std::min(kTile, data.size.n);
    std::vector<std::int64_t> positions = random_positions(random, length, std::min(length, data.size.k));
    for (std::int64_t& i : positions) i += begin;
    plant_winners(data.row(r), positions, random);
  }
}

void cluster(const Data& data, const Cluster& where) {
  const float base = static_cast<float>(where.quarters) / 4;
  std::fill(data.x.begin(), data.x.end(), base);
  const std::int64_t tile = where.partition % whole_tiles(data.size.n) * kTile;
  const std::int64_t length = std::min(kTile, data.size.n);
  const std::int64_t spikes = std::min(length, data.size.k + where.extra);
  const std::int64_t begin = tile + std::min(where.offset, length - spikes);
  for (std::int64_t r = 0; r < data.size.batch; ++r)
    for (std::int64_t s = 0; s < spikes; ++s) {
      const float fall = spikes == 1 ? 0 : 0.75f * static_cast<float>(s) / static_cast<float>(spikes - 1);
      data.row(r)[index(begin + s)] = base + 1.0f - fall;
    }
}

void random_cluster(const Data& data) {
  // The public generator's ranges.
  Random random = data.random("places");
  Cluster where{};
  where.partition = random.between(0, 127);
  where.offset = random.between(0, 127);
  where.extra = random.between(1, 32);
  where.quarters = random.between(2, 6);
  cluster(data, where);
}

void canonical_cluster(const Data& data) {
  // The public case is one fixed array; here its places stand, its values do not.
  cluster(data, {.partition = 3, .offset = 17, .extra = 8, .quarters = 4});
  Random random = data.random("scale");
  const float scale = random.uniform(0.5f, 2);
  for (float& value : data.x) value *= scale;
}

void one_lane(const Data& data, std::int64_t stride) {
  nominal(data);
  Random random = data.random("places");
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    const std::int64_t count = std::min(data.size.n / stride, std::max<std::int64_t>(64, data.size.k + 16));
    const std::int64_t spare = data.size.n - (count - 1) * stride;  // starts that leave room for all
    const std::int64_t begin = random.below(spare);
    std::vector<std::int64_t> positions;
    for (std::int64_t w = 0; w < count; ++w) positions.push_back(begin + w * stride);
    plant_winners(data.row(r), positions, random);
  }
}

void slice_ties(const Data& data) {
  nominal(data);
  Random random = data.random("places");
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    const std::int64_t slice = std::int64_t{256} << random.below(4);
    const float tie = random.uniform(10, 11);
    const std::int64_t edges = (data.size.n - 1) / slice;
    const std::int64_t wanted = std::min(edges, data.size.k / 2 + 1 + random.below(4));
    for (const std::int64_t edge : random_positions(random, edges, wanted)) {
      data.row(r)[index((edge + 1) * slice - 1)] = tie;
      data.row(r)[index((edge + 1) * slice)] = tie;
    }
  }
}

void tile_edges(const Data& data) {
  nominal(data);
  Random random = data.random("places");
  const auto n = data.size.n;
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    // The ends and one edge of 1024 always; then edges of every usual tile, at -1, 0 and +1.
    std::vector<std::int64_t> positions = {0, n - 1};
    if (n > kTile + 1) {
      const std::int64_t edge = random.between(1, (n - 2) / kTile) * kTile;
      positions.insert(positions.end(), {edge - 1, edge, edge + 1});
    }
    const std::int64_t slice = std::int64_t{256} << random.below(4);
    const std::int64_t wanted = std::min(std::max<std::int64_t>(data.size.k, 8), n / slice);
    while (n > slice + 1 && std::ssize(positions) < wanted)
      positions.push_back(random.between(1, (n - 2) / slice) * slice + random.between(-1, 1));
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    // A small k takes a random few of them, so that every place is some row's winner.
    if (std::ssize(positions) > data.size.k) {
      std::vector<std::int64_t> some;
      for (const std::int64_t p : random_positions(random, std::ssize(positions), data.size.k))
        some.push_back(positions[index(p)]);
      positions = some;
    }
    plant_winners(data.row(r), positions, random);
  }
}

void kth_tie(const Data& data) {
  // k - 1 winners, about half of the rest tied at the k-th value, the others below.
  Random random = data.random("places");
  const float tie = random.uniform(1, 2);
  fill_uniform(data.x, data.stream(), 0, 1);
  for (float& u : data.x) u = u < 0.5f ? tie : tie - u;
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    std::vector<std::int64_t> positions = random_positions(random, data.size.n, data.size.k);
    data.row(r)[index(positions.back())] = tie;
    positions.pop_back();
    plant_winners(data.row(r), positions, random);
  }
}

void low_then_high(const Data& data) {
  fill_uniform(data.x, data.stream(), 0, 1);
  for (std::int64_t r = 0; r < data.size.batch; ++r)
    for (float& value : data.row(r).subspan(index(data.size.n / 2))) value += 2;
}

void small_then_large(const Data& data) {
  nominal(data);
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    const std::span<float> row = data.row(r);
    const std::size_t small = index(std::min(kTile, data.size.n));
    for (float& value : row.first(small)) value *= 0x1p-6f;
    for (float& value : row.subspan(small)) value += 16;
  }
}

void first_wins(const Data& data) {
  all_negative(data);
  Random random = data.random("winner");
  for (std::int64_t r = 0; r < data.size.batch; ++r) data.row(r).front() = -0x1p-12f * random.uniform(0.5f, 1);
}

void last_wins(const Data& data) {
  all_negative(data);
  Random random = data.random("winner");
  for (std::int64_t r = 0; r < data.size.batch; ++r) data.row(r).back() = -0x1p-12f * random.uniform(0.5f, 1);
}

}  // namespace kbh::topk
