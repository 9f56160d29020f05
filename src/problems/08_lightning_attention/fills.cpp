#include "problems/08_lightning_attention/fills.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kbh::lightning {
namespace {

void fill_decay(const Data& data, float factor) {
  for (std::uint64_t h = 0; h < data.heads(); ++h) data.decay[h] = head_decay(h, data.heads(), factor);
}

void fill_qkv(const Data& data, float q, float k, float v) {
  fill_each(data.q, data.stream("q"), NormalBf16{q});
  fill_each(data.k, data.stream("k"), NormalBf16{k});
  fill_each(data.v, data.stream("v"), NormalBf16{v});
}

/// Nominal but for the decay, which is left to the caller.
void fill_normals(const Data& data) {
  fill_qkv(data, 1, 1, 1);
  fill_normal(data.s, data.stream("s"));
}

/// `groups` amplitudes, of which two different ones are the least and the largest.
Amplitudes amplitudes(const Data& data, std::int64_t groups) {
  Random random = data.random("ends");
  const std::int64_t lowest = random.below(groups);
  const std::int64_t highest = (lowest + 1 + random.below(std::max<std::int64_t>(1, groups - 1))) % groups;
  return {data.stream("amplitudes"), static_cast<std::uint64_t>(lowest), static_cast<std::uint64_t>(highest)};
}

/// 4 to 8 of either sign, times the element's usual size: an element of q, k or v so changed moves o by a third of its
/// rms at least.
float jump(Random& random) {
  const float size = random.uniform(4, 8);
  return random.below(2) == 0 ? size : -size;
}

void change_bf16(std::span<std::uint16_t> values, Random& random) {
  for (std::int64_t n = random.between(1, 7); n > 0; --n)
    values[index(random.below(std::ssize(values)))] = to_bf16(jump(random));
}

void change_f32(std::span<float> values, Random& random) {
  for (std::int64_t n = random.between(1, 7); n > 0; --n)
    values[index(random.below(std::ssize(values)))] = jump(random);
}

void change_decay(std::span<float> decay, Random& random) {
  decay[index(random.below(std::ssize(decay)))] *= random.uniform(0.25f, 0.75f);
}

}  // namespace

void nominal(const Data& data) {
  fill_normals(data);
  fill_decay(data, 1);
}

void random_layer(const Data& data) {
  fill_normals(data);
  fill_decay(data, data.random("layer").log_uniform(-16.6f, -0.5f));  // 1e-5 to 0.7
}

void near_one(const Data& data) {
  fill_normals(data);
  Random random = data.random("decay");
  for (float& decay : data.decay) decay = 1.0f - random.log_uniform(-15, -8);
}

void no_decay(const Data& data) {
  fill_normals(data);
  std::fill(data.decay.begin(), data.decay.end(), 1.0f);
}

void strong_decay(const Data& data) {
  const StrongDecay strong{data.stream("decay")};
  const auto shift = static_cast<std::uint64_t>(data.random("shift").below(3));
  fill_qkv(data, 1, 1, 1);
  fill_each(data.s, data.stream("s"), FadingF32{strong, data.heads(), shift});
  for (std::uint64_t h = 0; h < data.heads(); ++h) data.decay[h] = strong(h);
}

void scaled(const Data& data, const Scales& scales) {
  fill_qkv(data, scales.q, scales.k, scales.v);
  fill_each(data.s, data.stream("s"), NormalF32{scales.s});
  fill_decay(data, 1);
}

void random_scale(const Data& data) {
  Random random = data.random("scales");
  Scales scales;
  for (float* scale : {&scales.q, &scales.k, &scales.v}) *scale = random.log_uniform(-10, 10);
  scales.s = scales.k * scales.v * random.log_uniform(-6, 6);
  scaled(data, scales);
}

void mixed(const Data& data, Block block) {
  const Amplitudes by_group = amplitudes(data, block == Block::memory ? data.size.memories() : kD / 16);
  fill_qkv(data, 1, 1, 1);
  // The new token is as large as what it is added to.
  const bool rows = block == Block::rows;
  fill_each(rows ? data.k : data.v, data.stream(rows ? "k" : "v"), MixedBf16{by_group, block});
  fill_each(data.s, data.stream("s"), MixedF32{by_group, block});
  fill_decay(data, 1);
}

void prefix(const Data& data, float first, float rest) {
  fill_qkv(data, 1, 1, 1);
  fill_each(data.v, data.stream("v"), PrefixBf16{kChannels, first, rest});
  fill_each(data.s, data.stream("s"), PrefixF32{kElements, first, rest});  // the first memory: 64 KiB
  fill_decay(data, 1);
}

void outliers(const Data& data) {
  fill_qkv(data, 1, 1, 1);
  fill_each(data.s, data.stream("s"), OutliersF32{});
  fill_decay(data, 1);
}

void cancelling(const Data& data) {
  fill_qkv(data, 1, 1, 1);
  fill_each(data.s, data.stream("s"), CancellingF32{data.stream("k"), data.stream("v"), data.heads()});
  fill_decay(data, 1);
}

void orthogonal_query(const Data& data) {
  fill_qkv(data, 1, 1, 1);
  fill_each(data.q, data.stream("q"), OrthogonalBf16{data.stream("k")});
  fill_each(data.s, data.stream("s"), NormalF32{0x1p-8f});
  fill_decay(data, 1);
}

void positive(const Data& data) {
  fill_each(data.q, data.stream("q"), PositiveBf16{});
  fill_each(data.k, data.stream("k"), PositiveBf16{});
  fill_each(data.v, data.stream("v"), PositiveBf16{});
  fill_each(data.s, data.stream("s"), PositiveF32{16});
  fill_decay(data, 1);
}

void integers(const Data& data) {
  // |s_next| <= 8190 + 64 needs 14 bits, tf32 has 11; 128 * 8 * 8254 < 2^24.
  for (const auto& [tensor, name] : {std::pair{data.q, "q"}, std::pair{data.k, "k"}, std::pair{data.v, "v"}})
    fill_each(tensor, data.stream(name), IntegerBf16{8});
  fill_each(data.s, data.stream("s"), IntegerF32{4095, 2});
  Random random = data.random("decay");
  for (float& decay : data.decay) decay = random.below(2) == 0 ? 1.0f : 0.5f;
}

void one_hot(const Data& data) {
  // In every other draw the query reads the row that the key has written.
  const bool same = data.random("same").below(2) == 0;
  fill_each(data.q, data.stream("q"), OneHotBf16{data.stream(same ? "places" : "other places")});
  fill_each(data.k, data.stream("k"), OneHotBf16{data.stream("places")});
  fill_each(data.v, data.stream("v"), NormalBf16{1});
  fill_normal(data.s, data.stream("s"));
  fill_decay(data, 1);
}

void empty_memory(const Data& data) {
  fill_qkv(data, 1, 1, 1);
  std::fill(data.s.begin(), data.s.end(), 0.0f);
  fill_decay(data, 1);
}

void sparse_memory(const Data& data) {
  fill_qkv(data, 1, 1, 1);
  fill_each(data.s, data.stream("s"), SparseRowsF32{data.stream("rows")});
  fill_decay(data, 1);
}

void next_token(const Data& data, int step, const Expected& former) {
  const std::vector<double>& next = former.outputs[kSNext];
  std::transform(next.begin(), next.end(), data.s.begin(), [](double value) { return static_cast<float>(value); });
  fill_each(data.q, data.stream(fmt::format("q/{}", step)), NormalBf16{1});
  fill_each(data.k, data.stream(fmt::format("k/{}", step)), NormalBf16{1});
  fill_each(data.v, data.stream(fmt::format("v/{}", step)), NormalBf16{1});
}

void change_some(const Data& data, int step) {
  Random random = data.random(fmt::format("change/{}", step));
  const auto chosen = [step](std::size_t input) { return step == 1 || static_cast<std::size_t>(step) == input + 2; };
  if (chosen(kQ)) change_bf16(data.q, random);
  if (chosen(kK)) change_bf16(data.k, random);
  if (chosen(kV)) change_bf16(data.v, random);
  if (chosen(kS)) change_f32(data.s, random);
  if (chosen(kDecay)) change_decay(data.decay, random);
}

}  // namespace kbh::lightning
