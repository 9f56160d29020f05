#include <algorithm>

#include "problems/06_moe_swiglu/data.hpp"
#include "problems/06_moe_swiglu/draws.hpp"

namespace kbh::moe {
namespace {

constexpr std::int64_t kPrefixElements = 32768;  // 64 KiB

/// Scale of hidden at which gate and up have this standard deviation, whatever H is.
float hidden_scale_for(const Sizes& size, float deviation) {
  return philox::div(deviation, philox::mul(kWeightScale, philox::root(static_cast<float>(size.width))));
}

std::function<void(const Inputs&)> scaled(float scale) {
  return [scale](const Inputs& in) {
    in.draw(NormalBf16{philox::mul(kHiddenScale, scale)});
    in.route_evenly();
  };
}

std::function<void(const Inputs&)> with_deviation(float deviation) {
  return [deviation](const Inputs& in) {
    in.draw(NormalBf16{hidden_scale_for(in.size, deviation)});
    in.route_evenly();
  };
}

void random_scale(const Inputs& in) {
  in.draw(NormalBf16{hidden_scale_for(in.size, in.random("scale").log_uniform(-20, 12))});
  in.route_evenly();
}

/// Blocks of 128 rows (fewer where there are few) between 2^-6 and 2^6 of the nominal scale; both ends occur.
void mixed_rows(const Inputs& in) {
  const std::int64_t rows = in.size.rows();
  const std::int64_t block = std::clamp<std::int64_t>(rows / 4, 1, 128);
  const std::int64_t blocks = (rows + block - 1) / block;
  Random random = in.random("scale");
  std::vector<float> of_block;
  for (std::int64_t b = 0; b < blocks; ++b) of_block.push_back(random.log_uniform(-6, 6));
  const std::int64_t loud = random.below(blocks);
  of_block[index(loud)] = random.log_uniform(5, 6);
  if (blocks > 1) of_block[index((loud + random.between(1, blocks - 1)) % blocks)] = random.log_uniform(-6, -5);
  std::vector<float> scales;
  for (std::int64_t r = 0; r < rows; ++r) scales.push_back(kHiddenScale * of_block[index(r / block)]);
  in.draw(StretchedNormalBf16{scales.data(), static_cast<std::uint64_t>(in.size.width)});
  in.route_evenly();
}

void mixed_columns(const Inputs& in) {
  Random random = in.random("scale");
  std::vector<float> scales;
  for (std::int64_t k = 0; k < in.size.width; ++k) scales.push_back(kHiddenScale * random.log_uniform(-6, 6));
  in.draw(ColumnNormalBf16{scales.data(), static_cast<std::uint64_t>(in.size.width)});
  in.route_evenly();
}

/// The last 8 terms of each sum carry a good part of it: a dropped tail shows however long the sum is.
void loud_tail(const Inputs& in) {
  std::vector<float> scales(index(in.size.width), kHiddenScale);
  for (std::size_t k = scales.size() - 8; k < scales.size(); ++k) scales[k] *= 16;
  in.draw(ColumnNormalBf16{scales.data(), static_cast<std::uint64_t>(in.size.width)});
  in.route_evenly();
}

/// Each expert's weights have a scale of their own.
void mixed_weights(const Weights& weights) {
  Random random = weights.random("scale");
  std::vector<float> scales;
  for (std::int64_t e = 0; e < weights.size.experts; ++e) scales.push_back(kWeightScale * random.log_uniform(-4, 4));
  const auto length = static_cast<std::uint64_t>(weights.size.width * weights.size.columns);
  fill_each(weights.gate, weights.key.stream("W_gate"), StretchedNormalBf16{scales.data(), length});
  fill_each(weights.up, weights.key.stream("W_up"), StretchedNormalBf16{scales.data(), length});
}

std::function<void(const Inputs&)> prefix(float scale, float rest_scale) {
  return [=](const Inputs& in) {
    const std::int64_t elements = std::min(kPrefixElements, std::ssize(in.hidden) / 2);
    in.draw(PrefixNormalBf16{static_cast<std::uint64_t>(elements), kHiddenScale * scale, kHiddenScale * rest_scale});
    in.route_evenly();
  };
}

/// Two terms of every sum, one in its first quarter and one in its last.
struct Pair {
  std::uint64_t first;
  std::uint64_t second;

  Pair(const DrawKey& key, const Sizes& size) {
    Random random(key.stream("pair"));
    first = static_cast<std::uint64_t>(random.below(size.width / 4));
    second = static_cast<std::uint64_t>(random.between(size.width - size.width / 4, size.width - 1));
  }
};

void twin_weights(const Weights& weights) {
  const Pair pair(weights.key, weights.size);
  const auto draw = [&](std::span<std::uint16_t> to, std::string_view name) {
    const std::uint64_t stream = weights.key.stream(name);
    fill_each(
        to, stream,
        TwinRowsNormalBf16{stream, static_cast<std::uint64_t>(weights.size.width),
                           static_cast<std::uint64_t>(weights.size.columns), pair.first, pair.second, kWeightScale});
  };
  draw(weights.gate, "W_gate");
  draw(weights.up, "W_up");
}

/// x = 512 nominal deviations at one place and the opposite at another, whose weights are equal: the two terms cancel
/// exactly, but every partial sum between them is 512 / sqrt(H) times as large as the result. fp32 keeps 2^-15 of it
/// or better; a partial sum in bf16 or fp16 loses the others.
void opposed(const Inputs& in) {
  const Pair pair(in.key, in.size);
  in.draw(OpposedNormalBf16{static_cast<std::uint64_t>(in.size.width), pair.first, pair.second, kHiddenScale,
                            512 * kHiddenScale * in.random("scale").uniform(1, 2)});
  in.route_evenly();
}

/// Integers throughout: W_gate 64 in its first row, else -1, 0, 1; W_up 32, else -2 to 2; hidden 1 in its first column,
/// +-1 in its last, about 30 more +-1. gate stays far above 20, where silu(gate) = gate in fp32, and all partial sums
/// are integers below 256, which bf16 holds: the only rounding left is that of out.
void integer_weights(const Weights& weights) {
  const auto width = static_cast<std::uint64_t>(weights.size.width);
  const auto columns = static_cast<std::uint64_t>(weights.size.columns);
  fill_each(weights.gate, weights.key.stream("W_gate"), IntegerBf16{width, columns, 64, 1});
  fill_each(weights.up, weights.key.stream("W_up"), IntegerBf16{width, columns, 32, 2});
}

void integer_inputs(const Inputs& in) {
  const double share = std::min(1.0, 28.0 / static_cast<double>(in.size.width));
  in.draw(SparseSignBf16{static_cast<std::uint64_t>(in.size.width), static_cast<std::uint32_t>(share * 0xffffffff)});
  in.route_evenly();
}

Case integers() {
  Case c = with_weights(single("integers", "sums are integers and silu is the identity: every term of a sum shows",
                               integer_inputs, {"last_k_dropped", "one_wrong", "clamped_swiglu", "zeros"}),
                        integer_weights);
  // One bf16 rounding is 2^-8 at most. One term more or less changes gate (near 64) by 2^-6 and up (near 32) by 2^-5 or
  // 2^-4. No Frobenius bounds: single elements tell.
  c.bounds = {.r = 0x1p-7};
  return c;
}

void one_hot_weights(const Weights& weights) {
  fill_each(weights.gate, weights.key.stream("W_gate"), IntegerBf16{1, 1, 0, 8});
  fill_each(weights.up, weights.key.stream("W_up"), IntegerBf16{1, 1, 0, 128});
}

void one_hot_inputs(const Inputs& in) {
  Random random = in.random("places");
  std::vector<std::int32_t> hot;
  for (std::int64_t r = 0; r < in.size.rows(); ++r)
    hot.push_back(static_cast<std::int32_t>(random.below(in.size.width)));
  in.draw(OneHotBf16{hot.data(), static_cast<std::uint64_t>(in.size.width)});
  in.route_evenly();
}

Case nominal() {
  Case c = as_upstream(
      single("nominal", "hidden N(0, 0.1), weights N(0, 0.02), equal shares: what is timed", nominal_inputs,
             {"zeros", "constant", "copy_input", "permuted_rows", "last_k_dropped", "last_expert_dropped",
              "neighbour_expert", "boundary_row", "relu", "first_weights", "fp8_weights", "stale", "one_wrong"}),
      {0.02, 0.02});
  c.nominal = true;
  return c;
}

bool several_experts(const Sizes& size) { return size.experts >= 2; }

}  // namespace

std::vector<Case> value_cases() {
  return {
      nominal(),
      as_upstream(single("small_hidden", "hidden x 1e-2 (public stress): out near 1e-7, below fp16's numbers",
                         scaled(1e-2f), {"zeros", "one_wrong", "fp16_output", "last_k_dropped"}),
                  {5e-4, 5e-2}),
      as_upstream(single("large_hidden", "hidden x 8 (public stress)", scaled(8), {"swapped", "one_wrong", "relu"}),
                  {1e-1, 5e-2}),
      single("gate_near_1", "gate has deviation 1 whatever H is: silu is curved there", with_deviation(1),
             {"linear_sigmoid", "clamped_sigmoid", "gelu", "swapped", "relu"}),
      single("gate_near_8", "gate has deviation 8: silu is 0 on one side and the identity on the other",
             with_deviation(8), {"linear_sigmoid", "clamped_swiglu", "swapped", "public_scales"}),
      single("huge", "gate has deviation 2^17: exponentials overflow, fp16 too; out stays finite",
             with_deviation(0x1p17f),
             {"overflowing_silu", "fp16_accumulation", "fp16_output", "clamped_swiglu", "linear_sigmoid"}),
      single("random_scale", "a random scale of hidden: recognition of the public ones", random_scale,
             {"one_wrong", "last_k_dropped", "zeros"}),
      single("mixed_rows", "blocks of 128 rows from 2^-6 to 2^6: tiles too quiet to bother with", mixed_rows,
             {"quiet_skipped", "permuted_rows"}),
      single("mixed_columns", "each column of hidden has its own scale, 2^-6 to 2^6", mixed_columns,
             {"zeros", "one_wrong", "permuted_rows"}),
      single("loud_tail", "the last 8 columns of hidden x 16: dropped tails of the sums", loud_tail,
             {"last_k_dropped", "one_wrong"}),
      applying(with_weights(single("mixed_experts", "each expert's weights have their own scale, 2^-4 to 2^4",
                                   nominal_inputs, {"neighbour_expert", "last_expert_dropped", "boundary_row"}),
                            mixed_weights),
               several_experts),
      single("prefix_nominal", "the first 64 KiB of hidden nominal, the rest x 8: a look at the first elements only",
             prefix(1, 8), {"prefix_range", "one_wrong"}),
      single("prefix_large", "the first 64 KiB of hidden x 8, the rest nominal: a look at the first elements only",
             prefix(8, 1), {"one_wrong", "last_k_dropped"}),
      with_weights(single("cancelling", "two large terms of every sum cancel: partial sums below fp32", opposed,
                          {"bf16_accumulation", "fp16_accumulation", "last_expert_dropped"}),
                   twin_weights),
      integers(),
      with_weights(single("one_hot", "each row of hidden is one 1, weights are integers: out shows the layout",
                          one_hot_inputs, {"permuted_rows", "neighbour_expert", "one_wrong", "constant"}),
                   one_hot_weights),
  };
}

}  // namespace kbh::moe
