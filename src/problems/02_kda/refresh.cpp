#include "base/parallel.hpp"
#include "problems/02_kda/data.hpp"

namespace kbh::kda {
namespace {

/// The rows of one chain, as `fill_each` would draw them.
template <typename T, typename Draw>
void redraw(const Sizes& size, std::int64_t chain, std::span<T> out, std::int64_t width, std::uint64_t stream,
            Draw draw) {
  constexpr std::size_t kTokensWorthAThread = 128;
  parallel_for(index(size.tokens), kTokensWorthAThread, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      const std::size_t first = index(size.row(chain, static_cast<std::int64_t>(t)) * width);
      for (std::size_t i = first; i < first + index(width); ++i) out[i] = draw(philox::words(stream, i), i);
    }
  });
}

}  // namespace

void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected) {
  const Data data(key, tensors);
  const Sizes& size = data.size;
  const std::int64_t chain = data.random("refresh").below(size.chains());
  redraw(size, chain, data.q, size.key_width, key.stream("q"), NormalBf16{kAmplitude});
  redraw(size, chain, data.k, size.key_width, key.stream("k"), NormalBf16{kAmplitude});
  redraw(size, chain, data.v, size.value_width, key.stream("v"), NormalBf16{kAmplitude});
  redraw(size, chain, data.g, size.key_width, key.stream("g"), kNominalGate);
  redraw(size, chain, data.beta, 1, key.stream("beta"), SigmoidBf16{});
  const std::vector<ConstTensorView> views(tensors.begin(), tensors.end());
  solve_chain(size, views, chain, expected.outputs[0]);
}

}  // namespace kbh::kda
