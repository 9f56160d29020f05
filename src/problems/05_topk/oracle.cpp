#include <algorithm>

#include "base/parallel.hpp"
#include "problems/05_topk/selection.hpp"
#include "problems/05_topk/topk.hpp"

namespace kbh::topk {
namespace {

using Winners = Largest<std::uint32_t>;

/// True when an element of the block may be wanted. Vectorises; on random data nearly all blocks end here.
bool any_above(const float* x, std::size_t n, float threshold) {
  unsigned above = 0;
  for (std::size_t i = 0; i < n; ++i) above |= x[i] > threshold ? 1u : 0u;
  return above != 0;
}

void scan(std::span<const float> x, Winners& winners) {
  constexpr std::size_t kBlock = 128;
  for (std::size_t begin = 0; begin < x.size(); begin += kBlock) {
    const std::span<const float> block = x.subspan(begin, std::min(kBlock, x.size() - begin));
    if (winners.full() && !any_above(block.data(), block.size(), value_of_key(winners.threshold()))) continue;
    for (const float value : block) winners.offer(ordered_key(value));
  }
}

/// Short rows are one piece of work; a long row is cut when there are fewer rows than processors.
std::int64_t slices_of(const Sizes& size) {
  constexpr std::int64_t kShortest = 1 << 14;
  const auto processors = static_cast<std::int64_t>(available_processors());
  const std::int64_t wanted = (processors + size.batch - 1) / size.batch;
  return std::clamp<std::int64_t>(size.n / kShortest, 1, wanted);
}

}  // namespace

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  const std::span<const float> x = tensors[0].as<float>();
  const std::int64_t slices = slices_of(size);
  const std::int64_t slice = (size.n + slices - 1) / slices;
  constexpr std::int64_t kElementsWorthAThread = 1 << 16;

  std::vector<std::vector<std::uint32_t>> partial(index(size.batch * slices));
  parallel_for(partial.size(), index(1 + kElementsWorthAThread / (slice + 1)), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto row = static_cast<std::int64_t>(i) / slices;
      const std::int64_t first = std::min(static_cast<std::int64_t>(i) % slices * slice, size.n);
      const std::int64_t length = std::min(slice, size.n - first);
      Winners winners(index(size.k));
      scan(row_of(x, row, size.n).subspan(index(first), index(length)), winners);
      partial[i] = winners.descending();
    }
  });

  Expected expected{{{}, {}}};
  std::vector<double>& values = expected.outputs[0];
  values.reserve(index(size.batch * size.k));
  for (std::int64_t row = 0; row < size.batch; ++row) {
    std::vector<std::uint32_t> keys;
    for (std::int64_t s = 0; s < slices; ++s) {
      const auto& part = partial[index(row * slices + s)];
      keys.insert(keys.end(), part.begin(), part.end());
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    for (std::int64_t j = 0; j < size.k; ++j) values.push_back(static_cast<double>(value_of_key(keys[index(j)])));
  }
  return expected;
}

}  // namespace kbh::topk
