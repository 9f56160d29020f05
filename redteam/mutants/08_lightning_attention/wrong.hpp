// Wrong kernels for 08_lightning_attention. Each looks right for a reason that its own file names.
//
// inputs   q, k, v  bf16 (B, H, 128)     s  fp32 (B, H, 128, 128)     decay  fp32 (H)
// outputs  s_next   fp32 (B, H, 128, 128)     o  bf16 (B, H, 128)
#pragma once

#include <kbh/host.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::lightning::wrong {

enum class Mutant : std::uint8_t {
  zeros,
  constant,
  copies_memory,
  stale,
  one_wrong,
  no_decay,
  decays_new_token,
  neighbours_decay,
  reads_before_writing,
  transposed_update,
  state_tf32,
  update_bf16,
  decay_bf16,
  reads_bf16,
  last_row_dropped,
  permuted_heads,
  reads_tf32,
  reads_fp16,
  reads_truncated,
  decay_from_index,
  remembered_decay,
  near_one_is_one,
  drops_old_memory,
  small_update_skipped,
  small_memory_skipped,
  zero_key_skips_decay,
  first_row_decides,
  clamped,
  smallest_skipped,
  prefix_sniff,
  checked_memo,
  head_tail_dropped,
  masked_head,
};

inline constexpr std::int64_t kD = 128;
inline constexpr std::int64_t kMemory = kD * kD;

/// All tensors of a call.
struct Call {
  std::int64_t heads;
  std::int64_t memories;
  const std::uint16_t* q;
  const std::uint16_t* k;
  const std::uint16_t* v;
  const float* s;
  const float* decay;
  float* s_next;
  std::uint16_t* o;

  Call(const kbh_tensor* inputs, const kbh_tensor* outputs)
      : heads(inputs[0].shape[1]),
        memories(inputs[0].shape[0] * heads),
        q(static_cast<const std::uint16_t*>(inputs[0].data)),
        k(static_cast<const std::uint16_t*>(inputs[1].data)),
        v(static_cast<const std::uint16_t*>(inputs[2].data)),
        s(static_cast<const float*>(inputs[3].data)),
        decay(static_cast<const float*>(inputs[4].data)),
        s_next(static_cast<float*>(outputs[0].data)),
        o(static_cast<std::uint16_t*>(outputs[1].data)) {}
};

/// One memory (b, h), its token converted to fp32.
struct Memory {
  float q[kD];
  float k[kD];
  float v[kD];
  float decay;
  const float* s;
  float* s_next;
  std::uint16_t* o;

  Memory(const Call& call, std::int64_t m)
      : decay(call.decay[m % call.heads]),
        s(call.s + m * kMemory),
        s_next(call.s_next + m * kMemory),
        o(call.o + m * kD) {
    for (std::int64_t c = 0; c < kD; ++c) {
      q[c] = from_bf16(call.q[m * kD + c]);
      k[c] = from_bf16(call.k[m * kD + c]);
      v[c] = from_bf16(call.v[m * kD + c]);
    }
  }
};

// ---- roundings
// ---------------------------------------------------------------------------------------------------------

inline float same(float x) { return x; }
inline float bf16(float x) { return from_bf16(to_bf16(x)); }
inline float fp16(float x) { return from_f16(to_f16(x)); }
/// 10 bits behind the point, to nearest, ties away from zero, as the conversion on a GPU.
inline float tf32(float x) { return float_of_bits((bits_of(x) + 0x1000u) & 0xffffe000u); }
inline std::uint16_t cut_to_bf16(float x) { return static_cast<std::uint16_t>(bits_of(x) >> 16); }

// ---- the two halves of a step
// ------------------------------------------------------------------------------------------

/// s_next[i, j] = next(i, j, s[i, j]).
template <typename Next>
void write(const Memory& m, Next next) {
  for (std::int64_t i = 0; i < kD; ++i)
    for (std::int64_t j = 0; j < kD; ++j) m.s_next[i * kD + j] = next(i, j, m.s[i * kD + j]);
}

/// o = q * seen(matrix).
template <typename Seen, typename Rounded>
void read(const Memory& m, const float* matrix, Seen seen, Rounded rounded) {
  float sums[kD] = {};
  for (std::int64_t i = 0; i < kD; ++i)
    for (std::int64_t j = 0; j < kD; ++j) sums[j] += m.q[i] * seen(matrix[i * kD + j]);
  for (std::int64_t j = 0; j < kD; ++j) m.o[j] = rounded(sums[j]);
}

inline void read(const Memory& m) { read(m, m.s_next, same, to_bf16); }

/// The right update; mutants change `decay` and the token before.
inline void write(const Memory& m) {
  write(m, [&](std::int64_t i, std::int64_t j, float s) { return m.decay * s + m.k[i] * m.v[j]; });
}

inline void step(const Memory& m) {
  write(m);
  read(m);
}

template <typename Next>
void step(const Memory& m, Next next) {
  write(m, next);
  read(m);
}

inline void right(const Call& call) {
  for (std::int64_t n = 0; n < call.memories; ++n) step(Memory(call, n));
}

inline float largest(const float* values, std::int64_t n) {
  float most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = std::fabs(values[i]) > most ? std::fabs(values[i]) : most;
  return most;
}

// ---- wrong within one memory
// -------------------------------------------------------------------------------------------

inline void blank(const Memory& m, float value) {
  for (std::int64_t i = 0; i < kMemory; ++i) m.s_next[i] = value;
  for (std::int64_t j = 0; j < kD; ++j) m.o[j] = to_bf16(value);
}

inline void with_decay(Memory& m, float decay) {
  m.decay = decay;
  step(m);
}

inline void clamped_to(const Memory& m, float limit) {
  step(m, [&](std::int64_t i, std::int64_t j, float s) {
    const float x = m.decay * s + m.k[i] * m.v[j];
    return x > limit ? limit : x < -limit ? -limit : x;
  });
}

template <typename Rounding>
void stored(const Memory& m, Rounding rounding) {
  step(m, [&](std::int64_t i, std::int64_t j, float s) { return rounding(m.decay * s + m.k[i] * m.v[j]); });
}

inline void reads_before_writing(const Memory& m) {
  write(m);
  read(m, m.s, same, to_bf16);
}

inline void last_row_dropped(const Memory& m) {
  step(m, [&](std::int64_t i, std::int64_t j, float s) { return i == kD - 1 ? s : m.decay * s + m.k[i] * m.v[j]; });
}

inline void small_update_skipped(Memory& m) {
  if (largest(m.k, kD) * largest(m.v, kD) < 0x1p-12f * largest(m.s, kMemory)) std::memset(m.k, 0, sizeof m.k);
  step(m);
}

inline void small_memory_skipped(Memory& m) {
  const bool small = largest(m.s, kMemory) < 0x1p-10f * largest(m.k, kD) * largest(m.v, kD);
  with_decay(m, small ? 0 : m.decay);
}

inline void zero_key_skips_decay(const Memory& m) {
  step(m, [&](std::int64_t i, std::int64_t j, float s) { return m.k[i] == 0 ? s : m.decay * s + m.k[i] * m.v[j]; });
}

/// One memory of the mutants that look at nothing else.
inline void run_memory(Mutant which, Memory& m) {
  const auto update = [&](std::int64_t i, std::int64_t j) { return m.k[i] * m.v[j]; };
  switch (which) {
    case Mutant::zeros:
      return blank(m, 0);
    case Mutant::constant:
      return blank(m, 0.5f);
    case Mutant::copies_memory:
      return step(m, [](std::int64_t, std::int64_t, float s) { return s; });
    case Mutant::no_decay:
      return with_decay(m, 1);
    case Mutant::decays_new_token:
      return step(m, [&](std::int64_t i, std::int64_t j, float s) { return m.decay * (s + update(i, j)); });
    case Mutant::reads_before_writing:
      return reads_before_writing(m);
    case Mutant::transposed_update:
      return step(m, [&](std::int64_t i, std::int64_t j, float s) { return m.decay * s + update(j, i); });
    case Mutant::state_tf32:
      return stored(m, tf32);
    case Mutant::update_bf16:
      return step(m, [&](std::int64_t i, std::int64_t j, float s) { return m.decay * s + bf16(update(i, j)); });
    case Mutant::decay_bf16:
      return with_decay(m, bf16(m.decay));
    case Mutant::reads_bf16:
      return write(m), read(m, m.s_next, bf16, to_bf16);
    case Mutant::reads_tf32:
      return write(m), read(m, m.s_next, tf32, to_bf16);
    case Mutant::reads_fp16:
      return write(m), read(m, m.s_next, fp16, to_bf16);
    case Mutant::reads_truncated:
      return write(m), read(m, m.s_next, same, cut_to_bf16);
    case Mutant::last_row_dropped:
      return last_row_dropped(m);
    case Mutant::near_one_is_one:
      return with_decay(m, m.decay > 0.9963f ? 1 : m.decay);
    case Mutant::drops_old_memory:
      return with_decay(m, m.decay < 0.01f ? 0 : m.decay);
    case Mutant::small_update_skipped:
      return small_update_skipped(m);
    case Mutant::small_memory_skipped:
      return small_memory_skipped(m);
    case Mutant::zero_key_skips_decay:
      return zero_key_skips_decay(m);
    case Mutant::first_row_decides:
      return with_decay(m, largest(m.s, kD) == 0 ? 0 : m.decay);
    case Mutant::clamped:
      return clamped_to(m, 64);
    default:
      return step(m);
  }
}

// ---- wrong over all memories
// -------------------------------------------------------------------------------------------

/// Which decay memory n uses.
template <typename Choice>
void choose_decay(const Call& call, Choice choice) {
  for (std::int64_t n = 0; n < call.memories; ++n) {
    Memory m(call, n);
    with_decay(m, choice(n));
  }
}

inline float first_layers_decay(std::int64_t h, std::int64_t heads) {
  return static_cast<float>(std::exp(-std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads))));
}

/// Within 2^-16 of the first layer's slopes the given decay is used: the table may be rounded otherwise.
inline void decay_from_index(const Call& call) {
  choose_decay(call, [&](std::int64_t n) {
    const float given = call.decay[n % call.heads];
    const float table = first_layers_decay(n % call.heads, call.heads);
    return std::fabs(given - table) < 0x1p-16f * table ? given : table;
  });
}

inline void remembered_decay(const Call& call) {
  static std::vector<float> first;
  if (static_cast<std::int64_t>(first.size()) != call.heads) first.assign(call.decay, call.decay + call.heads);
  choose_decay(call, [&](std::int64_t n) { return first[static_cast<std::size_t>(n % call.heads)]; });
}

inline void permuted_heads(const Call& call) {
  right(call);
  for (std::int64_t j = 0; j < kD; ++j) {
    const std::uint16_t first = call.o[j];
    call.o[j] = call.o[kD + j];
    call.o[kD + j] = first;
  }
  for (std::int64_t i = 0; i < kMemory; ++i) {
    const float first = call.s_next[i];
    call.s_next[i] = call.s_next[kMemory + i];
    call.s_next[kMemory + i] = first;
  }
}

inline void smallest_skipped(const Call& call) {
  const float most = largest(call.s, call.memories * kMemory);
  for (std::int64_t n = 0; n < call.memories; ++n) {
    Memory m(call, n);
    with_decay(m, largest(m.s, kMemory) * 32 < most ? 0 : m.decay);
  }
}

inline void prefix_sniff(const Call& call) {
  const bool nominal = largest(call.s, kMemory) < 8;
  for (std::int64_t n = 0; n < call.memories; ++n) {
    const Memory m(call, n);
    if (nominal)
      clamped_to(m, 32);
    else
      step(m);
  }
}

inline void head_tail_dropped(const Call& call) {
  for (std::int64_t n = 0; n < call.memories; ++n) {
    const Memory m(call, n);
    if (n < call.memories / 4 * 4)
      step(m);
    else
      blank(m, 0);
  }
}

/// A copy of a call's answer.
class Answer {
 public:
  void keep(const Call& call) {
    s_next_.assign(call.s_next, call.s_next + call.memories * kMemory);
    o_.assign(call.o, call.o + call.memories * kD);
  }
  [[nodiscard]] bool fits(const Call& call) const { return static_cast<std::int64_t>(o_.size()) == call.memories * kD; }
  void give(const Call& call) const {
    std::memcpy(call.s_next, s_next_.data(), s_next_.size() * sizeof(float));
    std::memcpy(call.o, o_.data(), o_.size() * sizeof(std::uint16_t));
  }

 private:
  std::vector<float> s_next_;
  std::vector<std::uint16_t> o_;
};

inline void stale(const Call& call) {
  static Answer former;
  const Answer before = former;
  right(call);
  former.keep(call);
  if (before.fits(call)) before.give(call);
}

/// A few elements of everything that the call reads.
inline std::vector<float> sampled(const Call& call) {
  constexpr std::int64_t kStride = 61;
  std::vector<float> values(call.decay, call.decay + 1);
  for (const std::uint16_t* tensor : {call.q, call.k, call.v})
    for (std::int64_t i = 0; i < call.memories * kD; i += kStride) values.push_back(from_bf16(tensor[i]));
  for (std::int64_t i = 0; i < call.memories * kMemory; i += kStride) values.push_back(call.s[i]);
  return values;
}

inline void checked_memo(const Call& call) {
  static Answer former;
  static std::vector<float> seen;
  std::vector<float> now = sampled(call);
  if (former.fits(call) && now == seen) return former.give(call);
  right(call);
  former.keep(call);
  seen = std::move(now);
}

/// A wrong element of s_next or of o, at a place that the data decide.
inline void one_wrong(const Call& call) {
  right(call);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::int64_t i = 0; i < call.memories * kD; ++i) hash = (hash ^ call.q[i] ^ (call.k[i] << 7)) * 0x100000001b3u;
  const auto place = static_cast<std::int64_t>((hash >> 20) % static_cast<std::uint64_t>(call.memories * kMemory));
  const Memory m(call, place / kMemory);
  const std::int64_t i = place % kMemory / kD;
  const std::int64_t j = place % kD;
  if ((hash >> 13 & 1u) != 0) {
    const float scale = std::fabs(m.decay * m.s[i * kD + j]) + std::fabs(m.k[i] * m.v[j]);
    m.s_next[i * kD + j] += scale > 0 ? 0x1p-10f * scale : 1.0f;
    return;
  }
  double query = 0;
  double column = 0;
  for (std::int64_t r = 0; r < kD; ++r) {
    query += static_cast<double>(m.q[r]) * m.q[r];
    column += static_cast<double>(m.s_next[r * kD + j]) * m.s_next[r * kD + j];
  }
  const float old = from_bf16(m.o[j]);
  const auto scale = static_cast<float>(std::sqrt(query * column / kD));
  m.o[j] = to_bf16(old + (old < 0 ? -1.0f : 1.0f) * (0.05f * scale + 0.1f * std::fabs(old)));
}

/// h of memory n is n & (H - 1).
inline void masked_head(const Call& call) {
  choose_decay(call, [&](std::int64_t n) { return call.decay[n & (call.heads - 1)]; });
}

inline void neighbours_decay(const Call& call) {
  choose_decay(call, [&](std::int64_t n) { return call.decay[(n + 1) % call.heads]; });
}

/// The wrong answer to one call. There is no state.
inline void run(Mutant which, const kbh_tensor*, const kbh_tensor* inputs, const kbh_tensor* outputs) {
  const Call call(inputs, outputs);
  switch (which) {
    case Mutant::stale:
      return stale(call);
    case Mutant::one_wrong:
      return one_wrong(call);
    case Mutant::neighbours_decay:
      return neighbours_decay(call);
    case Mutant::permuted_heads:
      return permuted_heads(call);
    case Mutant::decay_from_index:
      return decay_from_index(call);
    case Mutant::remembered_decay:
      return remembered_decay(call);
    case Mutant::smallest_skipped:
      return smallest_skipped(call);
    case Mutant::prefix_sniff:
      return prefix_sniff(call);
    case Mutant::checked_memo:
      return checked_memo(call);
    case Mutant::head_tail_dropped:
      return head_tail_dropped(call);
    case Mutant::masked_head:
      return masked_head(call);
    default:
      for (std::int64_t n = 0; n < call.memories; ++n) {
        Memory m(call, n);
        run_memory(which, m);
      }
  }
}

}  // namespace kbh::lightning::wrong

#ifdef KBH_MUTANT
extern "C" int kbh_create(const kbh_context*, void** self) {
  *self = nullptr;
  return 0;
}

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  kbh::lightning::wrong::run(kbh::lightning::wrong::Mutant::KBH_MUTANT, nullptr, inputs, outputs);
  return 0;
}

extern "C" void kbh_destroy(void*) {}
#endif
