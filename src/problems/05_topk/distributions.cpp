#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "problems/05_topk/fills.hpp"

namespace kbh::topk {
namespace {

void multiply(std::span<float> x, float factor) {
  for (float& value : x) value *= factor;
}

}  // namespace

void nominal(const Data& data) { fill_normal(data.x, data.stream()); }

void scaled(const Data& data, float scale) {
  nominal(data);
  multiply(data.x, scale);
}

void random_scale(const Data& data) {
  // A factor of 8 away from the public scales 1e-4, 1 and 1e3: who knows those must not get through by luck.
  Random random = data.random("scale");
  const auto near_public = [](float exponent) {
    return std::abs(exponent + 13.29f) < 3 || std::abs(exponent) < 3 || std::abs(exponent - 9.97f) < 3;
  };
  float exponent = 0;
  while (near_public(exponent)) exponent = random.uniform(-40, 40);
  scaled(data, philox::exp2(exponent));
}

void mixed_rows(const Data& data) {
  nominal(data);
  // One row is surely among the smallest and one among the largest, else two rows might happen to be alike.
  Random random = data.random("scale");
  const std::vector<std::int64_t> extremes =
      random_positions(random, data.size.batch, std::min<std::int64_t>(2, data.size.batch));
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    float scale = random.log_uniform(-6, 6);
    if (r == extremes.front()) scale = random.log_uniform(-6, -5);
    if (r == extremes.back()) scale = random.log_uniform(5, 6);
    multiply(data.row(r), scale);
  }
}

void prefix(const Data& data, float prefix_scale, float rest_scale) {
  constexpr std::size_t kPrefix = (std::size_t{64} << 10) / sizeof(float);
  nominal(data);
  const std::size_t length = std::min(kPrefix, data.x.size() / 2);
  multiply(data.x.first(length), prefix_scale);
  multiply(data.x.subspan(length), rest_scale);
}

void all_equal(const Data& data) {
  Random random = data.random("value");
  const float magnitude = random.uniform(0.5f, 2.0f);
  std::fill(data.x.begin(), data.x.end(), random.below(2) == 0 ? magnitude : -magnitude);
}

void all_negative(const Data& data) {
  nominal(data);
  for (float& value : data.x) value = -std::abs(value) - 0x1p-10f;
}

void heavy_tails(const Data& data) {
  // The ratio of two normals is Cauchy; normal() is never 0, so the ratio is finite.
  nominal(data);
  std::array<float, 4096> divisors{};
  const std::uint64_t stream = data.stream("divisor");
  for (std::size_t begin = 0; begin < data.x.size(); begin += divisors.size()) {
    const std::span<float> block = data.x.subspan(begin, std::min(divisors.size(), data.x.size() - begin));
    fill_normal(std::span(divisors).first(block.size()), stream, begin);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] /= divisors[i];
  }
}

void uniform(const Data& data) { fill_uniform(data.x, data.stream(), 0, 1); }

void four_values(const Data& data) {
  Random random = data.random("values");
  const float values[4] = {random.uniform() - 2, random.uniform() - 1, random.uniform(), random.uniform() + 1};
  fill_each(data.x, data.stream(), [&](const philox::Words& words, std::size_t) { return values[words.v[0] >> 30]; });
}

void narrow(const Data& data) { fill_uniform(data.x, data.stream(), 999.99f, 1000.01f); }

void denormals(const Data& data) {
  fill_each(data.x, data.stream(),
            [](const philox::Words& words, std::size_t) { return philox::from_bits((words.v[0] & 0x807fffffu) | 1u); });
}

void signed_zeros(const Data& data) {
  fill_each(data.x, data.stream(),
            [](const philox::Words& words, std::size_t) { return philox::from_bits(words.v[0] & 0x80000000u); });
  // Zeroed outputs (+0, index 0) must be wrong even for k = 1.
  for (std::int64_t r = 0; r < data.size.batch; ++r) data.row(r).front() = -0.0f;
}

void shared_bits(const Data& data, int bits) {
  Random random = data.random("prefix");
  const std::uint32_t shared = 0xffffffffu << (32 - bits);
  std::vector<std::uint32_t> prefixes;
  for (std::int64_t r = 0; r < data.size.batch; ++r) {
    const auto exponent = static_cast<std::uint32_t>(random.between(64, 190));
    prefixes.push_back(((random.word() & 0x807fffffu) | exponent << 23) & shared);
  }
  const auto n = static_cast<std::size_t>(data.size.n);
  fill_each(data.x, data.stream(), [&](const philox::Words& words, std::size_t i) {
    return philox::from_bits(prefixes[i / n] | (words.v[0] & ~shared));
  });
}

}  // namespace kbh::topk
