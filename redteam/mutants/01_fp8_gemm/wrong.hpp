// Wrong kernels for 01_fp8_gemm: each is right up to one shortcut. A file beside this one submits one of them
// (KBH_MUTANT); `kbh lint-problem` runs them all against every case.
#pragma once

#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <kbh/numbers.hpp>

// Lint runs these by the thousand: vectors of whatever width the machine has. A submission has -march=native.
#if defined(__x86_64__) && !defined(KBH_SANITIZED) && !defined(KBH_MUTANT)
#define KBH_WRONG_EVERY_WIDTH __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define KBH_WRONG_EVERY_WIDTH
#endif

namespace kbh::fp8_gemm::wrong {

enum class Mutant {
  zeros,
  constant,
  copy_input,
  permuted_rows,
  stale,
  stale_weight,
  sampled_memo,
  one_wrong,
  one_scale,
  scale_fp16,
  last_column_dropped,
  odd_column_dropped,
  tail_dropped,
  tail_unmasked,
  whole_tiles_only,
  e5m2_operands,
  flush_subnormals,
  fixed_point,
  clamped_to_nominal,
  range_from_prefix,
  rows_rescaled,
  small_rows_skipped,
  bf16_accumulator,
  bf16_split_k,
  fp16_partial_sums,
  truncated_output,
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---- a right kernel in parts that the mutants take apart

/// One call with its operands decoded: x (M, K), and weight transposed, (K, N).
struct Call {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::vector<float> x;
  std::vector<float> weight;
  std::vector<float> scale;
  std::uint16_t* out;

  Call(const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs)
      : m(inputs[0].shape[0]),
        n(state[0].shape[0]),
        k(inputs[0].shape[1]),
        x(index(m * k)),
        weight(index(k * n)),
        out(static_cast<std::uint16_t*>(outputs[0].data)) {
    const auto* x_codes = static_cast<const std::uint8_t*>(inputs[0].data);
    const auto* weight_codes = static_cast<const std::uint8_t*>(state[0].data);
    const auto* scales = static_cast<const float*>(state[1].data);
    float values[256];
    for (int code = 0; code < 256; ++code) values[code] = from_e4m3(static_cast<std::uint8_t>(code));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = values[x_codes[i]];
    for (std::int64_t row = 0; row < n; ++row)
      for (std::int64_t c = 0; c < k; ++c) weight[index(c * n + row)] = values[weight_codes[row * k + c]];
    scale.assign(scales, scales + n);
  }

  [[nodiscard]] std::size_t outputs() const { return index(m * n); }
};

/// sums (M, N) += x[., begin..end) weight[begin..end, .)
KBH_WRONG_EVERY_WIDTH static void accumulate(const Call& call, std::int64_t begin, std::int64_t end, float* sums) {
  constexpr std::int64_t kTile = 64;
  const std::int64_t n = call.n;
  for (std::int64_t j = 0; j < n; j += kTile)
    for (std::int64_t i = 0; i < call.m; ++i) {
      float* to = sums + i * n + j;
      const float* row = call.x.data() + i * call.k;
      const float* columns = call.weight.data() + j;
      if (n - j >= kTile) {
        float tile[kTile];
        for (std::int64_t t = 0; t < kTile; ++t) tile[t] = to[t];
        for (std::int64_t c = begin; c < end; ++c)
          for (std::int64_t t = 0; t < kTile; ++t) tile[t] += row[c] * columns[c * n + t];
        for (std::int64_t t = 0; t < kTile; ++t) to[t] = tile[t];
      } else {
        for (std::int64_t c = begin; c < end; ++c)
          for (std::int64_t t = 0; t < n - j; ++t) to[t] += row[c] * columns[c * n + t];
      }
    }
}

inline std::vector<float> product(const Call& call, std::int64_t begin, std::int64_t end) {
  std::vector<float> sums(call.outputs());
  accumulate(call, begin, end, sums.data());
  return sums;
}

inline void write(const Call& call, const std::vector<float>& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) call.out[i] = to_bf16(sums[i] * call.scale[i % index(call.n)]);
}

/// The right answer for what `call` holds by now, but for columns of K from `end` on.
inline void answer_without(const Call& call, std::int64_t end) { write(call, product(call, 0, end)); }
inline void answer(const Call& call) { answer_without(call, call.k); }

template <typename F>
void each(std::vector<float>& values, F f) {
  for (float& value : values) value = f(value);
}

template <typename F>
void answer_with_operands(Call& call, F f) {
  each(call.x, f);
  each(call.weight, f);
  answer(call);
}

inline float largest_of(const float* values, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i]));
  return largest;
}

// ---- blunt ones

inline void copy_input(const Call& call) {
  for (std::size_t i = 0; i < call.outputs(); ++i) call.out[i] = to_bf16(call.x[i % call.x.size()]);
}

inline void constant(const Call& call) {
  answer(call);
  std::fill_n(call.out, call.outputs(), call.out[0]);
}

inline void permuted_rows(const Call& call) {
  answer(call);
  std::rotate(call.out, call.out + call.n, call.out + call.outputs());
}

/// At a place that depends on all inputs, never at a zero.
inline void one_wrong(const Call& call) {
  answer(call);
  if (call.outputs() == 0) return;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < call.outputs(); ++i) hash = (hash ^ call.out[i]) * 0x100000001b3u;
  std::size_t at = (hash >> 20) % call.outputs();
  for (std::size_t tries = 0; tries < call.outputs() && (call.out[at] & 0x7fffu) == 0; ++tries)
    at = (at + 1) % call.outputs();
  const std::uint16_t* row = call.out + at / index(call.n) * index(call.n);
  float squares = 0;
  for (std::int64_t i = 0; i < call.n; ++i) squares += from_bf16(row[i]) * from_bf16(row[i]);
  const float value = from_bf16(call.out[at]);
  call.out[at] = to_bf16(3 * value + std::copysign(std::sqrt(squares / static_cast<float>(call.n)), value));
}

// ---- memories

/// Returns what it returned before, where the sizes agree.
inline void stale(const Call& call) {
  static std::vector<std::uint16_t> kept;
  answer(call);
  std::vector<std::uint16_t> fresh(call.out, call.out + call.outputs());
  if (kept.size() == fresh.size()) std::copy(kept.begin(), kept.end(), call.out);
  kept = std::move(fresh);
}

/// Decodes the weights once for each size, not for each state.
inline void stale_weight(Call& call) {
  static std::vector<float> kept;
  static std::int64_t kept_k = 0;
  if (kept.size() == call.weight.size() && kept_k == call.k) {
    call.weight = kept;
  } else {
    kept = call.weight;
    kept_k = call.k;
  }
  answer(call);
}

/// Believes that x is what it was when its first and its last element and the weights are.
inline void sampled_memo(const Call& call) {
  static std::vector<float> weight;
  static std::vector<float> ends;
  static std::vector<std::uint16_t> kept;
  const std::vector<float> now = {call.x.front(), call.x.back(), static_cast<float>(call.m)};
  if (weight == call.weight && ends == now) {
    std::copy(kept.begin(), kept.end(), call.out);
    return;
  }
  answer(call);
  weight = call.weight;
  ends = now;
  kept.assign(call.out, call.out + call.outputs());
}

// ---- edges

/// A last step of 32 columns that is not masked: it reads on into the next row of both operands.
inline void tail_unmasked(Call& call) {
  const std::int64_t beyond = (32 - call.k % 32) % 32;
  std::vector<float> sums = product(call, 0, call.k);
  for (std::int64_t i = 0; i + 1 < call.m; ++i)
    for (std::int64_t j = 0; j + 1 < call.n; ++j)
      for (std::int64_t c = 0; c < std::min(beyond, call.k); ++c)
        sums[index(i * call.n + j)] += call.x[index((i + 1) * call.k + c)] * call.weight[index(c * call.n + j + 1)];
  write(call, sums);
}

/// Rows and columns beyond a whole number of tiles of 8 are never written.
inline void whole_tiles_only(const Call& call) {
  const std::vector<std::uint16_t> before(call.out, call.out + call.outputs());
  answer(call);
  for (std::int64_t i = 0; i < call.m; ++i)
    for (std::int64_t j = 0; j < call.n; ++j)
      if (i >= call.m / 8 * 8 || j >= call.n / 8 * 8) call.out[i * call.n + j] = before[index(i * call.n + j)];
}

// ---- formats

/// Two bits of mantissa, rounded to the nearest.
inline float e5m2(float value) {
  const std::uint32_t bits = bits_of(value);
  return float_of_bits((bits + 0xfffffu + ((bits >> 21) & 1u)) & ~0x1fffffu);
}

inline float without_subnormals(float value) { return std::abs(value) < 0x1p-6f ? 0.0f : value; }

/// Multiples of 2^-6.
inline float fixed_point(float value) { return std::nearbyint(value * 64) / 64; }

inline float clamped(float value) { return std::clamp(value, -4.0f, 4.0f); }

/// x in 128 steps of the largest of its first 64 KiB (a quarter of a small x).
inline void range_from_prefix(Call& call) {
  const auto looked_at = std::min<std::int64_t>(65536, std::max<std::int64_t>(1, call.m * call.k / 4));
  const float step = largest_of(call.x.data(), looked_at) / 128;
  if (step > 0) each(call.x, [=](float v) { return std::clamp(std::nearbyint(v / step), -128.0f, 128.0f) * step; });
  answer(call);
}

/// Each row of x is brought to 256 .. 448 by a power of two, and its outputs back: 0 / 0 in a row of zeros.
inline void rows_rescaled(Call& call) {
  std::vector<float> back;
  for (std::int64_t i = 0; i < call.m; ++i) {
    float* row = call.x.data() + i * call.k;
    const float factor = std::exp2(std::floor(std::log2(448 / largest_of(row, call.k))));
    for (std::int64_t c = 0; c < call.k; ++c) row[c] *= factor;
    back.push_back(1 / factor);
  }
  std::vector<float> sums = product(call, 0, call.k);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] *= back[i / index(call.n)];
  write(call, sums);
}

/// Rows of x below 1/64 of the largest element are taken for zeros.
inline void small_rows_skipped(Call& call) {
  const float least = largest_of(call.x.data(), call.m * call.k) / 64;
  for (std::int64_t i = 0; i < call.m; ++i) {
    float* row = call.x.data() + i * call.k;
    if (largest_of(row, call.k) < least) std::fill_n(row, call.k, 0.0f);
  }
  answer(call);
}

// ---- sums of too few bits

/// The sum is kept in bf16 between steps of 64 columns.
inline void bf16_accumulator(const Call& call) {
  std::vector<float> sums(call.outputs());
  for (std::int64_t begin = 0; begin < call.k; begin += 64) {
    accumulate(call, begin, std::min(begin + 64, call.k), sums.data());
    each(sums, [](float v) { return from_bf16(to_bf16(v)); });
  }
  write(call, sums);
}

/// K in four parts, whose sums are rounded before they are added.
template <typename Round>
void in_four_parts(const Call& call, Round round) {
  std::vector<float> sums(call.outputs());
  for (std::int64_t part = 0; part < 4; ++part) {
    const std::vector<float> partial = product(call, call.k * part / 4, call.k * (part + 1) / 4);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += round(partial[i]);
  }
  write(call, sums);
}

inline void truncated_output(const Call& call) {
  const std::vector<float> sums = product(call, 0, call.k);
  for (std::size_t i = 0; i < sums.size(); ++i)
    call.out[i] = static_cast<std::uint16_t>(bits_of(sums[i] * call.scale[i % index(call.n)]) >> 16);
}

inline void run(Mutant mutant, const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
  Call call(state, inputs, outputs);
  switch (mutant) {
    case Mutant::zeros:
      std::fill_n(call.out, call.outputs(), std::uint16_t{0});
      return;
    case Mutant::constant:
      return constant(call);
    case Mutant::copy_input:
      return copy_input(call);
    case Mutant::permuted_rows:
      return permuted_rows(call);
    case Mutant::stale:
      return stale(call);
    case Mutant::stale_weight:
      return stale_weight(call);
    case Mutant::sampled_memo:
      return sampled_memo(call);
    case Mutant::one_wrong:
      return one_wrong(call);
    case Mutant::one_scale:
      std::fill(call.scale.begin(), call.scale.end(), call.scale[0]);
      return answer(call);
    case Mutant::scale_fp16:
      each(call.scale, [](float v) { return from_f16(to_f16(v)); });
      return answer(call);
    case Mutant::last_column_dropped:
      return answer_without(call, call.k - 1);
    case Mutant::odd_column_dropped:
      return answer_without(call, call.k / 2 * 2);
    case Mutant::tail_dropped:
      return answer_without(call, call.k / 32 * 32);
    case Mutant::tail_unmasked:
      return tail_unmasked(call);
    case Mutant::whole_tiles_only:
      return whole_tiles_only(call);
    case Mutant::e5m2_operands:
      return answer_with_operands(call, e5m2);
    case Mutant::flush_subnormals:
      return answer_with_operands(call, without_subnormals);
    case Mutant::fixed_point:
      each(call.x, fixed_point);
      return answer(call);
    case Mutant::clamped_to_nominal:
      each(call.x, clamped);
      return answer(call);
    case Mutant::range_from_prefix:
      return range_from_prefix(call);
    case Mutant::rows_rescaled:
      return rows_rescaled(call);
    case Mutant::small_rows_skipped:
      return small_rows_skipped(call);
    case Mutant::bf16_accumulator:
      return bf16_accumulator(call);
    case Mutant::bf16_split_k:
      return in_four_parts(call, [](float v) { return from_bf16(to_bf16(v)); });
    case Mutant::fp16_partial_sums:
      return in_four_parts(call, [](float v) { return from_f16(to_f16(v)); });
    case Mutant::truncated_output:
      return truncated_output(call);
  }
}

}  // namespace kbh::fp8_gemm::wrong

#undef KBH_WRONG_EVERY_WIDTH

#ifdef KBH_MUTANT
namespace {
using State = std::vector<kbh_tensor>;
}

extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = new State(context->state, context->state + context->n_state);
  return 0;
}

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  using kbh::fp8_gemm::wrong::Mutant;
  kbh::fp8_gemm::wrong::run(Mutant::KBH_MUTANT, static_cast<const State*>(self)->data(), inputs, outputs);
  return 0;
}

extern "C" void kbh_destroy(void* self) { delete static_cast<State*>(self); }
#endif
