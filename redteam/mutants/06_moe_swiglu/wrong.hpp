// Wrong kernels for 06_moe_swiglu. Each NAME.cpp here makes one of them a submission; the proof that the problem's
// cases catch them (src/problems/06_moe_swiglu/mutants.cpp) calls the same functions.
#pragma once

#include <kbh/host.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::moe {

enum class Wrong {
  zeros,
  constant,
  copy_input,
  permuted_rows,
  last_k_dropped,
  k_ragged,
  column_ragged,
  last_expert_dropped,
  neighbour_expert,
  boundary_row,
  balanced_only,
  capacity,
  cached_routing,
  first_owner_search,
  tile_by_first_row,
  row_tail_dropped,
  relu,
  swapped,
  gelu,
  linear_sigmoid,
  clamped_sigmoid,
  clamped_swiglu,
  overflowing_silu,
  fp8_weights,
  bf16_accumulation,
  fp16_accumulation,
  fp16_output,
  first_weights,
  quiet_skipped,
  prefix_range,
  public_scales,
  stale,
  checked_memo,
  one_wrong,
};

// ---- one call

struct Call {
  int64_t rows, width, columns, experts;
  const uint16_t* gate;
  const uint16_t* up;
  const uint16_t* hidden;
  const int32_t* offsets;
  uint16_t* out;

  int64_t elements() const { return rows * columns; }
  uint16_t* row(int64_t r) const { return out + r * columns; }
};

inline Call call_of(const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
  return {.rows = inputs[0].shape[0],
          .width = inputs[0].shape[1],
          .columns = state[0].shape[2],
          .experts = state[0].shape[0],
          .gate = static_cast<const uint16_t*>(state[0].data),
          .up = static_cast<const uint16_t*>(state[1].data),
          .hidden = static_cast<const uint16_t*>(inputs[0].data),
          .offsets = static_cast<const int32_t*>(inputs[1].data),
          .out = static_cast<uint16_t*>(outputs[0].data)};
}

/// Rows [begin, end) meet one expert.
struct Span {
  int64_t expert, begin, end;
};
using Plan = std::vector<Span>;

/// Experts by offsets[0..experts].
inline Plan plan_of(const int32_t* offsets, int64_t experts) {
  Plan plan;
  for (int64_t e = 0; e < experts; ++e) plan.push_back({e, offsets[e], offsets[e + 1]});
  return plan;
}
inline Plan plan_of(const Call& c) { return plan_of(c.offsets, c.experts); }

// ---- the arithmetic, right as it stands

inline float same(float x) { return x; }
inline float swiglu(float gate, float up) { return gate / (1.0f + std::exp(-gate)) * up; }

struct Arithmetic {
  float (*input)(float) = same;
  float (*weight)(float) = same;
  float (*partial)(float) = same;  // each accumulator, after every 16 terms
  float (*activation)(float, float) = swiglu;
  float (*result)(float) = same;
  int64_t terms = INT64_MAX;    // of each sum, at most
  int64_t columns = INT64_MAX;  // of each row, at most; the others become 0
};

/// One expert's weights as floats.
struct Operands {
  std::vector<float> gate, up;

  void load(const Call& c, int64_t expert, float (*weight)(float)) {
    const auto elements = static_cast<size_t>(c.width * c.columns);
    gate.resize(elements);
    up.resize(elements);
    const uint16_t* from_gate = c.gate + expert * c.width * c.columns;
    const uint16_t* from_up = c.up + expert * c.width * c.columns;
    for (size_t i = 0; i < elements; ++i) {
      gate[i] = from_bf16(from_gate[i]);
      up[i] = from_bf16(from_up[i]);
    }
    if (weight == same) return;
    for (float& w : gate) w = weight(w);
    for (float& w : up) w = weight(w);
  }
};

/// sums[i] += x[0..4] * w[0..4][i]
inline void add_four(float* __restrict sums, const float* x, const float* __restrict w, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i)
    sums[i] += x[0] * w[i] + x[1] * w[columns + i] + (x[2] * w[2 * columns + i] + x[3] * w[3 * columns + i]);
}

inline void follow(const Call& c, const Plan& plan, const Arithmetic& how = {}) {
  Operands weights;
  const auto columns = static_cast<size_t>(c.columns);
  std::vector<float> x(static_cast<size_t>(c.width)), gate(columns), up(columns);
  for (const Span& span : plan) {
    if (span.begin >= span.end) continue;
    weights.load(c, span.expert, how.weight);
    for (int64_t r = span.begin; r < span.end; ++r) {
      for (int64_t k = 0; k < c.width; ++k) {
        const float value = from_bf16(c.hidden[r * c.width + k]);
        x[static_cast<size_t>(k)] = k < how.terms ? how.input(value) : 0.0f;
      }
      std::fill(gate.begin(), gate.end(), 0.0f);
      std::fill(up.begin(), up.end(), 0.0f);
      for (int64_t k = 0; k < c.width; k += 4) {
        add_four(gate.data(), x.data() + k, weights.gate.data() + k * c.columns, c.columns);
        add_four(up.data(), x.data() + k, weights.up.data() + k * c.columns, c.columns);
        if (how.partial == same || (k + 4) % 16 != 0) continue;
        for (float& sum : gate) sum = how.partial(sum);
        for (float& sum : up) sum = how.partial(sum);
      }
      for (size_t i = 0; i < columns; ++i) {
        const bool kept = static_cast<int64_t>(i) < how.columns;
        c.row(r)[i] = to_bf16(kept ? how.result(how.activation(gate[i], up[i])) : 0.0f);
      }
    }
  }
}

inline void compute(const Call& c, const Arithmetic& how = {}) { follow(c, plan_of(c), how); }

inline void fill(const Call& c, float value) { std::fill_n(c.out, c.elements(), to_bf16(value)); }

// ---- wrong arithmetic

inline float through_bf16(float x) { return from_bf16(to_bf16(x)); }
inline float through_f16(float x) { return from_f16(to_f16(x)); }

inline float clamped(float x, float most) { return std::min(std::max(x, -most), most); }
inline float relu_swiglu(float gate, float up) { return std::max(gate, 0.0f) * up; }
inline float swapped_swiglu(float gate, float up) { return swiglu(up, gate); }
inline float gelu_glu(float gate, float up) { return 0.5f * gate * (1.0f + std::erf(gate * 0.70710678f)) * up; }
inline float linear_sigmoid_glu(float gate, float up) { return gate * (0.5f + 0.25f * gate) * up; }
inline float clamped_sigmoid_glu(float gate, float up) {
  return gate * std::min(std::max(0.5f + 0.25f * gate, 0.0f), 1.0f) * up;
}
inline float clamped_swiglu(float gate, float up) { return swiglu(std::min(gate, 7.0f), clamped(up, 7.0f)); }
inline float overflowing_swiglu(float gate, float up) {
  const float e = std::exp(gate);
  return gate * e / (1.0f + e) * up;
}

/// Nominal weights end at 0.125: x 2^10 uses all of e4m3, and nothing is clipped in the nominal case.
inline float fp8_weight(float w) {
  const float scaled = clamped(w * 1024.0f, 448.0f);
  return from_e4m3(to_e4m3(scaled)) / 1024.0f;
}

// ---- wrong rows

inline void permuted_rows(const Call& c) {
  compute(c);
  std::rotate(c.out, c.row(1), c.out + c.elements());
}

inline void neighbour_expert(const Call& c) {
  Plan plan = plan_of(c);
  for (Span& span : plan) span.expert = (span.expert + 1) % c.experts;
  follow(c, plan);
}

/// Each expert ends one row early; that row goes to the next one.
inline void boundary_row(const Call& c) {
  Plan plan;
  for (const Span& span : plan_of(c)) {
    const bool early = span.begin < span.end && span.expert + 1 < c.experts;
    plan.push_back({span.expert, span.begin, span.end - (early ? 1 : 0)});
    if (early) plan.push_back({span.expert + 1, span.end - 1, span.end});
  }
  follow(c, plan);
}

inline void last_expert_dropped(const Call& c) {
  fill(c, 0);
  Plan plan = plan_of(c);
  for (size_t e = plan.size(); e-- > 0;)
    if (plan[e].begin < plan[e].end) {
      plan.resize(e);
      break;
    }
  follow(c, plan);
}

inline void balanced_only(const Call& c) {
  std::vector<int32_t> offsets = {0};
  for (int64_t e = 0; e < c.experts; ++e)
    offsets.push_back(offsets.back() + static_cast<int32_t>(c.rows / c.experts + (e < c.rows % c.experts ? 1 : 0)));
  follow(c, plan_of(offsets.data(), c.experts));
}

inline void capacity(const Call& c) {
  fill(c, 0);
  Plan plan = plan_of(c);
  for (Span& span : plan) span.end = std::min(span.end, span.begin + c.rows / c.experts + 128);
  follow(c, plan);
}

inline void cached_routing(const Call& c) {
  static std::vector<int32_t> offsets;
  if (std::ssize(offsets) != c.experts + 1 || offsets.back() != c.rows)
    offsets.assign(c.offsets, c.offsets + c.experts + 1);
  follow(c, plan_of(offsets.data(), c.experts));
}

/// The first expert whose rows begin at or before row r and end behind it is searched among beginnings: of equal ones,
/// which empty experts make, the first is taken.
inline void first_owner_search(const Call& c) {
  Plan plan;
  for (const Span& span : plan_of(c)) {
    if (span.begin == span.end) continue;
    const int64_t first = std::lower_bound(c.offsets, c.offsets + c.experts, span.begin) - c.offsets;
    plan.push_back({first, span.begin, span.end});
  }
  follow(c, plan);
}

inline void tile_by_first_row(const Call& c) {
  constexpr int64_t kTile = 16;
  Plan plan;
  for (int64_t r = 0; r < c.rows; r += kTile) {
    const int64_t expert = std::upper_bound(c.offsets, c.offsets + c.experts + 1, r) - c.offsets - 1;
    plan.push_back({expert, r, std::min(r + kTile, c.rows)});
  }
  follow(c, plan);
}

inline void row_tail_dropped(const Call& c) {
  fill(c, 0);
  Plan plan = plan_of(c);
  for (Span& span : plan) span.end -= (span.end - span.begin) % 16;
  follow(c, plan);
}

// ---- looks at the data

inline float largest(const uint16_t* x, int64_t n) {
  float most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(from_bf16(x[i])));
  return most;
}

inline double rms(const uint16_t* x, int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(from_bf16(x[i]));
    squares += value * value;
  }
  return std::sqrt(squares / static_cast<double>(n));
}

/// Tiles of 16 rows whose largest element is below 2^-5 of the tensor's.
inline void quiet_skipped(const Call& c) {
  constexpr int64_t kTile = 16;
  compute(c);
  const float least = largest(c.hidden, c.rows * c.width) / 32;
  for (int64_t r = 0; r < c.rows; r += kTile) {
    const int64_t rows = std::min(kTile, c.rows - r);
    if (largest(c.hidden + r * c.width, rows * c.width) < least) std::fill_n(c.row(r), rows * c.columns, uint16_t{0});
  }
}

/// hidden as 16-bit integers over a range that the first 64 KiB give.
inline void prefix_range(const Call& c) {
  const int64_t elements = c.rows * c.width;
  const float range = 1.5f * largest(c.hidden, std::min<int64_t>(32768, (elements + 1) / 2));
  std::vector<uint16_t> clipped(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i)
    clipped[static_cast<size_t>(i)] = to_bf16(clamped(from_bf16(c.hidden[i]), range));
  Call with = c;
  with.hidden = clipped.data();
  compute(with);
}

inline void public_scales(const Call& c) {
  const double seen = rms(c.hidden, c.rows * c.width);
  bool known = false;
  for (const double scale : {0.1, 0.001, 0.8}) known = known || std::abs(seen / scale - 1) < 0.05;
  compute(c, {.weight = known ? same : fp8_weight});
}

/// Wrong at one place that the answer itself chooses, by 4 times the tolerance.
inline void one_wrong(const Call& c) {
  compute(c);
  uint64_t hash = 1469598103934665603u;
  for (int64_t i = 0; i < c.elements(); ++i) hash = (hash ^ c.out[i]) * 1099511628211u;
  const auto place = static_cast<int64_t>((hash >> 24) % static_cast<uint64_t>(c.elements()));
  const double scale = std::max(rms(c.row(place / c.columns), c.columns), rms(c.out, c.elements()) / 16);
  const float value = from_bf16(c.out[place]);
  const float error = 4 * (0.01f * static_cast<float>(scale) + std::abs(value) / 64);
  c.out[place] = to_bf16(value + ((hash & 1) != 0 ? error : -error));
}

// ---- remembers

inline void first_weights(const Call& c) {
  static std::vector<uint16_t> gate;
  static std::vector<uint16_t> up;
  static int64_t width = 0;
  const int64_t elements = c.experts * c.width * c.columns;
  if (std::ssize(gate) != elements || width != c.width) {
    gate.assign(c.gate, c.gate + elements);
    up.assign(c.up, c.up + elements);
    width = c.width;
  }
  Call with = c;
  with.gate = gate.data();
  with.up = up.data();
  compute(with);
}

inline void stale(const Call& c) {
  static std::vector<uint16_t> former;
  compute(c);
  const std::vector<uint16_t> now(c.out, c.out + c.elements());
  if (former.size() == now.size()) std::copy(former.begin(), former.end(), c.out);
  former = now;
}

/// The former answer as long as the offsets, the sizes and four elements of hidden are what they were.
inline void checked_memo(const Call& c) {
  static std::vector<int64_t> former_key;
  static std::vector<uint16_t> former;
  std::vector<int64_t> key = {c.rows, c.width, c.columns};
  for (int64_t i = 0; i < 4; ++i) key.push_back(c.hidden[i * (c.rows * c.width - 1) / 3]);
  key.insert(key.end(), c.offsets, c.offsets + c.experts + 1);
  if (key == former_key) {
    std::copy(former.begin(), former.end(), c.out);
    return;
  }
  compute(c);
  former_key = key;
  former.assign(c.out, c.out + c.elements());
}

// ---- all of them

inline void run(Wrong wrong, const kbh_tensor* state, const kbh_tensor* inputs, const kbh_tensor* outputs) {
  const Call c = call_of(state, inputs, outputs);
  switch (wrong) {
    case Wrong::zeros:
      return fill(c, 0);
    case Wrong::constant:
      return fill(c, 0.001f);
    case Wrong::copy_input:
      for (int64_t i = 0; i < c.elements(); ++i) c.out[i] = c.hidden[i % (c.rows * c.width)];
      return;
    case Wrong::permuted_rows:
      return permuted_rows(c);
    case Wrong::last_k_dropped:
      return compute(c, {.terms = c.width - 1});
    case Wrong::k_ragged:
      return compute(c, {.terms = c.width / 16 * 16});
    case Wrong::column_ragged:
      return compute(c, {.columns = c.columns / 16 * 16});
    case Wrong::last_expert_dropped:
      return last_expert_dropped(c);
    case Wrong::neighbour_expert:
      return neighbour_expert(c);
    case Wrong::boundary_row:
      return boundary_row(c);
    case Wrong::balanced_only:
      return balanced_only(c);
    case Wrong::capacity:
      return capacity(c);
    case Wrong::cached_routing:
      return cached_routing(c);
    case Wrong::first_owner_search:
      return first_owner_search(c);
    case Wrong::tile_by_first_row:
      return tile_by_first_row(c);
    case Wrong::row_tail_dropped:
      return row_tail_dropped(c);
    case Wrong::relu:
      return compute(c, {.activation = relu_swiglu});
    case Wrong::swapped:
      return compute(c, {.activation = swapped_swiglu});
    case Wrong::gelu:
      return compute(c, {.activation = gelu_glu});
    case Wrong::linear_sigmoid:
      return compute(c, {.activation = linear_sigmoid_glu});
    case Wrong::clamped_sigmoid:
      return compute(c, {.activation = clamped_sigmoid_glu});
    case Wrong::clamped_swiglu:
      return compute(c, {.activation = clamped_swiglu});
    case Wrong::overflowing_silu:
      return compute(c, {.activation = overflowing_swiglu});
    case Wrong::fp8_weights:
      return compute(c, {.weight = fp8_weight});
    case Wrong::bf16_accumulation:
      return compute(c, {.partial = through_bf16});
    case Wrong::fp16_accumulation:
      return compute(c, {.partial = through_f16});
    case Wrong::fp16_output:
      return compute(c, {.result = through_f16});
    case Wrong::first_weights:
      return first_weights(c);
    case Wrong::quiet_skipped:
      return quiet_skipped(c);
    case Wrong::prefix_range:
      return prefix_range(c);
    case Wrong::public_scales:
      return public_scales(c);
    case Wrong::stale:
      return stale(c);
    case Wrong::checked_memo:
      return checked_memo(c);
    case Wrong::one_wrong:
      return one_wrong(c);
  }
}

}  // namespace kbh::moe

#ifdef KBH_MUTANT
extern "C" int kbh_create(const kbh_context* context, void** self) {
  *self = const_cast<kbh_tensor*>(context->state);
  return 0;
}

extern "C" int kbh_run(void* self, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  kbh::moe::run(kbh::moe::Wrong::KBH_MUTANT, static_cast<const kbh_tensor*>(self), inputs, outputs);
  return 0;
}

extern "C" void kbh_destroy(void*) {}
#endif
