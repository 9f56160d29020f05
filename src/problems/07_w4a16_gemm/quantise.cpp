#include <algorithm>

#include "base/every_width.hpp"
#include "problems/07_w4a16_gemm/fills.hpp"

namespace kbh::w4a16 {
namespace {

constexpr std::int64_t kStrip = kColumnUnit;  // columns that are quantised together

/// One group of kStrip columns. The pointers are those of its first element.
struct Strip {
  std::uint64_t stream;
  std::uint32_t first_element;  // of the stream (draws.hpp); N * K <= 2^29
  std::int64_t columns;         // N
  std::uint8_t* levels;
  std::uint16_t* scales;
  std::uint16_t* zeros;
};

KBH_EVERY_WIDTH void quantise(const Strip& s) {
  float weights[kGroup][kStrip];
  for (std::int64_t quad = 0; quad < kGroup / 4; ++quad) {
    // 32-bit counters and words apart from their use: else the generator does not vectorise, and a draw
    // takes twice as long.
    const std::uint32_t first = s.first_element + static_cast<std::uint32_t>(quad * s.columns);
    std::uint32_t words[4][kStrip];
    for (std::uint32_t j = 0; j < kStrip; ++j) {
      const Words w = philox::words(s.stream, first + j, 0);
      for (std::int64_t i = 0; i < 4; ++i) words[i][j] = w.v[i];
    }
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t j = 0; j < kStrip; ++j) weights[4 * quad + i][j] = weight_of(words[i][j]);
  }
  float low[kStrip];
  float high[kStrip];
  std::copy_n(weights[0], kStrip, low);
  std::copy_n(weights[0], kStrip, high);
  for (const auto& row : weights)
    for (std::int64_t j = 0; j < kStrip; ++j) {
      low[j] = row[j] < low[j] ? row[j] : low[j];
      high[j] = row[j] > high[j] ? row[j] : high[j];
    }
  float scale[kStrip];
  float zero[kStrip];
  for (std::int64_t j = 0; j < kStrip; ++j) {
    scale[j] = scale_of(low[j], high[j]);
    zero[j] = zero_of(low[j], scale[j]);
    s.scales[j] = to_bf16(scale[j]);
    s.zeros[j] = to_bf16(zero[j]);
  }
  for (std::int64_t pair = 0; pair < kGroup / 2; ++pair)
    for (std::int64_t j = 0; j < kStrip; ++j) {
      const std::uint32_t even = level_of(weights[2 * pair][j], scale[j], zero[j]);
      const std::uint32_t odd = level_of(weights[2 * pair + 1][j], scale[j], zero[j]);
      s.levels[pair * s.columns + j] = static_cast<std::uint8_t>(even | odd << 4);
    }
}

}  // namespace

void quantised_normal(const State& state) {
  const Sizes& size = state.size;
  const std::int64_t strips = size.n / kStrip;
  constexpr std::size_t kStripsWorthAThread = 32;  // 64 Ki weights, about 0.1 ms
  parallel_for(index(strips * size.groups()), kStripsWorthAThread, [&](std::size_t begin, std::size_t end) {
    const std::uint64_t stream = state.stream("weights");
    for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i) {
      const std::int64_t group = i / strips;
      const std::int64_t column = i % strips * kStrip;
      quantise({.stream = stream,
                .first_element = static_cast<std::uint32_t>(group * kGroup / 4 * size.n + column),
                .columns = size.n,
                .levels = &state.levels[index(group * kGroup / 2 * size.n + column)],
                .scales = &state.scales[index(group * size.n + column)],
                .zeros = &state.zeros[index(group * size.n + column)]});
    }
  });
}

}  // namespace kbh::w4a16
