// From the mathematics, in fp64. decay * s is exact there (24 + 24 bits), k * v too; only their sum and the sum over
// rows round.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <kbh/numbers.hpp>

#include "base/parallel.hpp"
#include "problem/draw.hpp"
#include "problems/08_lightning_attention/draws.hpp"
#include "problems/08_lightning_attention/lightning.hpp"

namespace kbh::lightning {
namespace {

using Channels = std::array<double, static_cast<std::size_t>(kD)>;

constexpr double kLeastNormal = 0x1p-126;
/// o may lose a denormal per term and its own: a * room = 2^-126 * (sum |q| + 1) for every a of at least 2^-14.
constexpr double kFlushedRead = kLeastNormal * 0x1p14;
constexpr double kFlushedState = 2 * kLeastNormal / kStateBound;

Channels channels_of(const ConstTensorView& tensor, std::int64_t memory) {
  Channels values;
  const auto bits = tensor.as<std::uint16_t>().subspan(index(memory * kD), index(kD));
  std::transform(bits.begin(), bits.end(), values.begin(),
                 [](std::uint16_t b) { return static_cast<double>(from_bf16(b)); });
  return values;
}

/// What the oracle says about one memory (b, h).
void judge_memory(const Sizes& size, std::span<const ConstTensorView> tensors, std::int64_t memory,
                  Expected& expected) {
  const Channels q = channels_of(tensors[kQ], memory);
  const Channels k = channels_of(tensors[kK], memory);
  const Channels v = channels_of(tensors[kV], memory);
  const float* s = tensors[kS].as<float>().data() + memory * kMemory;
  const auto decay = static_cast<double>(tensors[kDecay].as<float>()[index(memory % size.heads)]);
  double* next = expected.outputs[kSNext].data() + memory * kMemory;
  double* next_scale = expected.scales[kSNext].data() + memory * kMemory;

  Channels read{};
  Channels column_squares{};
  double query_squares = 0;
  double query_sum = 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    for (std::size_t j = 0; j < v.size(); ++j) {
      const double faded = decay * static_cast<double>(s[j]);
      const double written = k[i] * v[j];
      next[j] = faded + written;
      next_scale[j] = std::abs(faded) + std::abs(written) + kFlushedState;
      read[j] += q[i] * next[j];
      column_squares[j] += next[j] * next[j];
    }
    query_squares += q[i] * q[i];
    query_sum += std::abs(q[i]);
    s += kD;
    next += kD;
    next_scale += kD;
  }
  double* o = expected.outputs[kO].data() + memory * kD;
  double* o_scale = expected.scales[kO].data() + memory * kD;
  for (std::size_t j = 0; j < read.size(); ++j) {
    o[j] = read[j];
    o_scale[j] =
        std::sqrt(query_squares * column_squares[j] / static_cast<double>(kD)) + kFlushedRead * (query_sum + 1);
  }
}

/// Elements [first, first + out.size()) of a nominal draw.
void draw_bf16(std::span<std::uint16_t> out, std::uint64_t stream, std::uint64_t first) {
  const NormalBf16 draw{1.0f};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = draw(philox::words(stream, first + i), first + i);
}

}  // namespace

Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors) {
  const Sizes size(shape);
  Expected expected;
  const std::size_t elements = index(size.memories() * kMemory);
  const std::size_t channels = index(size.memories() * kD);
  expected.outputs = {std::vector<double>(elements), std::vector<double>(channels)};
  expected.scales = {std::vector<double>(elements), std::vector<double>(channels)};
  constexpr std::size_t kGrain = 8;  // memories: 0.1 ms, twice what starting a thread costs
  parallel_for(index(size.memories()), kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t m = begin; m < end; ++m) judge_memory(size, tensors, static_cast<std::int64_t>(m), expected);
  });
  return expected;
}

void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected) {
  const Sizes size(key.shape);
  Random random(key.stream("refresh"));
  std::set<std::int64_t> memories;
  for (int i = 0; i < 4; ++i) memories.insert(random.below(size.memories()));
  const std::vector<ConstTensorView> given(tensors.begin(), tensors.end());
  for (const std::int64_t memory : memories) {
    for (const auto input : {kQ, kK, kV})
      draw_bf16(tensors[input].as<std::uint16_t>().subspan(index(memory * kD), index(kD)),
                key.stream(tensors[input].spec->name), static_cast<std::uint64_t>(memory * kD));
    fill_normal(tensors[kS].as<float>().subspan(index(memory * kMemory), index(kMemory)), key.stream("s"),
                static_cast<std::uint64_t>(memory * kMemory));
    judge_memory(size, given, memory, expected);
  }
}

}  // namespace kbh::lightning
