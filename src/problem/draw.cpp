#include "problem/draw.hpp"

#include <algorithm>

#include "base/every_width.hpp"

namespace kbh {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 16;  // about 0.1 ms of work, twice what starting a thread costs

KBH_EVERY_WIDTH void normals(float* out, std::uint32_t n, std::uint64_t stream, std::uint32_t low, std::uint32_t high) {
  for (std::uint32_t i = 0; i < n; ++i) out[i] = philox::normal(philox::words(stream, low + i, high).v[0]);
}

KBH_EVERY_WIDTH void uniforms(float* out, std::uint32_t n, std::uint64_t stream, std::uint32_t low,
                              std::uint32_t high) {
  for (std::uint32_t i = 0; i < n; ++i) out[i] = philox::uniform(philox::words(stream, low + i, high).v[0]);
}

/// Calls block(out, n, low, high) on runs whose counters share their high word.
template <typename Block>
void each_block(std::span<float> out, std::uint64_t first, const Block& block) {
  parallel_for(out.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    while (begin < end) {
      const std::uint64_t counter = first + begin;
      const std::uint64_t left_in_word = (std::uint64_t{1} << 32) - (counter & 0xffffffffu);
      const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>({end - begin, left_in_word, 1u << 20}));
      block(out.data() + begin, n, static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32));
      begin += n;
    }
  });
}

}  // namespace

void fill_normal(std::span<float> out, std::uint64_t stream, std::uint64_t first) {
  each_block(out, first, [&](float* to, std::uint32_t n, std::uint32_t low, std::uint32_t high) {
    normals(to, n, stream, low, high);
  });
}

void fill_uniform(std::span<float> out, std::uint64_t stream, float low, float high, std::uint64_t first) {
  each_block(out, first, [&](float* to, std::uint32_t n, std::uint32_t counter_low, std::uint32_t counter_high) {
    uniforms(to, n, stream, counter_low, counter_high);
    for (std::uint32_t i = 0; i < n; ++i) to[i] = low + (high - low) * to[i];
  });
}

}  // namespace kbh
