#include <algorithm>

#include "problems/05_topk/fills.hpp"

namespace kbh::topk {
namespace {

constexpr std::int64_t kMostChanges = 7;

bool by_value(const float* a, const float* b) { return *a < *b; }

template <typename Change>
void change_some(const Data& data, Change change) {
  Random random = data.random("change");
  const std::int64_t count = random.between(1, kMostChanges);
  for (std::int64_t c = 0; c < count; ++c) change(data.row(random.below(data.size.batch)), random);
}

}  // namespace

void raise_some(const Data& data) {
  change_some(data, [&](std::span<float> row, Random& random) {
    const float largest = *std::max_element(row.begin(), row.end());
    // The smallest of four is hardly ever a winner already: the old winners stay where they are, and who only looks
    // whether they do keeps a wrong answer.
    float* raised = &row[index(random.below(data.size.n))];
    for (int i = 0; i < 3; ++i) raised = std::min(raised, &row[index(random.below(data.size.n))], by_value);
    *raised = largest + random.uniform(0.5f, 1);
  });
}

void lower_winners(const Data& data) {
  change_some(data, [&](std::span<float> row, Random& random) {
    const auto [smallest, largest] = std::minmax_element(row.begin(), row.end());
    *largest = *smallest - random.uniform(0.5f, 1);
  });
}

}  // namespace kbh::topk
