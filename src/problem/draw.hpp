// Drawing whole tensors on the CPU, from streams of DrawKey.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/every_width.hpp"
#include "base/parallel.hpp"
#include "base/philox.hpp"

namespace kbh {

/// Elements [first, first + out.size()) of the stream, each philox::normal of its first word.
void fill_normal(std::span<float> out, std::uint64_t stream, std::uint64_t first = 0);

/// low + (high - low) * philox::uniform of the first word. Rounding may return `high` itself.
void fill_uniform(std::span<float> out, std::uint64_t stream, float low, float high, std::uint64_t first = 0);

/// Elements [first, first + n), whose indices share their high word: 32-bit counters fit the vectors.
template <typename T, typename Draw>
KBH_EVERY_WIDTH void fill_stretch(T* out, std::uint32_t n, std::uint64_t stream, std::uint64_t first, Draw draw) {
  const auto low = static_cast<std::uint32_t>(first);
  const auto high = static_cast<std::uint32_t>(first >> 32);
  for (std::uint32_t i = 0; i < n; ++i) out[i] = draw(philox::words(stream, low + i, high), first + i);
}

/// out[i] = draw(words of element i, i), in parallel, for everything that has no bulk function of its own.
template <typename T, typename Draw>
void fill_each(std::span<T> out, std::uint64_t stream, Draw draw) {
  constexpr std::size_t kGrain = std::size_t{1} << 15;
  parallel_for((out.size() + kGrain - 1) / kGrain, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t first = begin * kGrain; first < std::min(out.size(), end * kGrain); first += kGrain)
      fill_stretch(out.data() + first, static_cast<std::uint32_t>(std::min(kGrain, out.size() - first)), stream, first,
                   draw);
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
