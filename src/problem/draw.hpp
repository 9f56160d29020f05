// Drawing whole tensors on the CPU, from streams of DrawKey.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/parallel.hpp"
#include "base/philox.hpp"

namespace kbh {

/// Elements [first, first + out.size()) of the stream, each philox::normal of its first word.
void fill_normal(std::span<float> out, std::uint64_t stream, std::uint64_t first = 0);

/// low + (high - low) * philox::uniform of the first word. Rounding may return `high` itself.
void fill_uniform(std::span<float> out, std::uint64_t stream, float low, float high, std::uint64_t first = 0);

/// out[i] = draw(words of element i, i), in parallel, for everything that has no bulk function of its own.
template <typename T, typename Draw>
void fill_each(std::span<T> out, std::uint64_t stream, Draw draw) {
  constexpr std::size_t kGrain = std::size_t{1} << 15;
  parallel_for(out.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) out[i] = draw(philox::words(stream, i), i);
  });
}

/// A few numbers in sequence: positions, counts, scales.
class Random {
 public:
  explicit Random(std::uint64_t stream) : stream_(stream) {}

  std::uint32_t word() { return philox::words(stream_, next_++).v[0]; }
  /// 0 .. n-1
  std::int64_t below(std::int64_t n) { return philox::below(word(), static_cast<std::uint32_t>(n)); }
  /// low .. high, both included
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  float uniform() { return philox::uniform(word()); }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  float log_uniform(float low, float high) { return philox::log_uniform(word(), low, high); }

 private:
  std::uint64_t stream_;
  std::uint64_t next_ = 0;
};

}  // namespace kbh
