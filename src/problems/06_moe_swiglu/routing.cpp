#include "problems/06_moe_swiglu/routing.hpp"

#include <algorithm>
#include <numeric>

#include "problems/06_moe_swiglu/moe.hpp"

namespace kbh::moe {
namespace {

std::vector<std::int64_t> shuffled(std::vector<std::int64_t> items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[index(random.below(static_cast<std::int64_t>(i)))]);
  return items;
}

}  // namespace

std::vector<std::int64_t> all_experts(std::int64_t experts) { return all_but(experts, 0, 0); }

std::vector<std::int64_t> all_but(std::int64_t experts, std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> owners;
  for (std::int64_t e = 0; e < experts; ++e)
    if (e < begin || e >= end) owners.push_back(e);
  return owners;
}

std::vector<std::int64_t> random_runs(std::int64_t experts, Random& random) {
  std::vector<std::int64_t> owners;
  for (std::int64_t e = random.below(3); e < experts; e += random.between(1, 6))
    for (const std::int64_t end = std::min(experts, e + random.between(1, 3)); e < end; ++e) owners.push_back(e);
  if (owners.empty()) owners.push_back(random.below(experts));
  return owners;
}

Counts balanced(std::int64_t rows, std::int64_t experts) {
  Counts counts(index(experts), rows / experts);
  for (std::int64_t e = 0; e < rows % experts; ++e) ++counts[index(e)];
  return counts;
}

Counts ragged(std::int64_t rows, std::int64_t experts, std::span<const std::int64_t> owners, Random& random) {
  std::vector<std::int64_t> cuts = {0, rows};
  for (std::size_t i = 1; i < owners.size(); ++i) cuts.push_back(random.between(0, rows));
  std::sort(cuts.begin(), cuts.end());
  Counts counts(index(experts));
  for (std::size_t i = 0; i < owners.size(); ++i) counts[index(owners[i])] = cuts[i + 1] - cuts[i];
  return counts;
}

Counts one_row_each(std::int64_t rows, std::int64_t experts, Random& random) {
  Counts counts(index(experts));
  for (std::int64_t e = 0; e < std::min(rows, experts); ++e) counts[index(e)] = 1;
  counts[index(random.below(experts))] += std::max<std::int64_t>(0, rows - experts);
  return counts;
}

Counts sized(std::int64_t rows, std::int64_t experts, std::span<const std::int64_t> sizes, Random& random) {
  Counts counts(index(experts));
  std::int64_t left = rows;
  // Each size comes up before any comes up again.
  std::vector<std::int64_t> next;
  for (const std::int64_t e : shuffled(all_experts(experts), random)) {
    if (next.empty()) next = shuffled({sizes.begin(), sizes.end()}, random);
    counts[index(e)] = std::min(left, next.back());
    left -= counts[index(e)];
    next.pop_back();
  }
  counts[index(random.below(experts))] += left;
  return counts;
}

Counts zipf(std::int64_t rows, std::int64_t experts, Random& random) {
  double total = 0;
  for (std::int64_t rank = 1; rank <= experts; ++rank) total += 1 / static_cast<double>(rank);
  Counts counts(index(experts));
  const std::vector<std::int64_t> order = shuffled(all_experts(experts), random);
  std::int64_t left = rows;
  for (std::int64_t rank = 1; rank <= experts; ++rank) {
    const auto share = static_cast<std::int64_t>(static_cast<double>(rows) / (static_cast<double>(rank) * total));
    counts[index(order[index(rank - 1)])] = share;
    left -= share;
  }
  counts[index(order.front())] += left;
  return counts;
}

Counts donated(std::int64_t rows, std::int64_t experts, std::int64_t receiver, std::int64_t donor, std::int64_t delta) {
  Counts counts = balanced(rows, experts);
  for (std::int64_t step = 0; step < experts && delta > 0; ++step) {
    const std::int64_t giver = (donor + step) % experts;
    if (giver == receiver) continue;
    const std::int64_t moved = std::clamp<std::int64_t>(counts[index(giver)] - 1, 0, delta);
    counts[index(giver)] -= moved;
    counts[index(receiver)] += moved;
    delta -= moved;
  }
  return counts;
}

}  // namespace kbh::moe
