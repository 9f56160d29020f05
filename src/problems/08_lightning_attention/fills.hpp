// How the tensors of each case are drawn, and what changes between calls on the same buffers. Every random choice comes
// from a secret stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "problem/draw.hpp"
#include "problems/08_lightning_attention/draws.hpp"
#include "problems/08_lightning_attention/lightning.hpp"

namespace kbh::lightning {

/// The inputs of one draw.
struct Data {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint16_t> q;
  std::span<std::uint16_t> k;
  std::span<std::uint16_t> v;
  std::span<float> s;
  std::span<float> decay;

  Data(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw),
        size(draw.shape),
        q(tensors[kQ].as<std::uint16_t>()),
        k(tensors[kK].as<std::uint16_t>()),
        v(tensors[kV].as<std::uint16_t>()),
        s(tensors[kS].as<float>()),
        decay(tensors[kDecay].as<float>()) {}

  /// The stream of a tensor, or of something else that the case draws (places, scales).
  [[nodiscard]] std::uint64_t stream(const std::string& name) const { return key.stream(name); }
  [[nodiscard]] Random random(const std::string& name) const { return Random(stream(name)); }
  [[nodiscard]] std::uint64_t heads() const { return static_cast<std::uint64_t>(size.heads); }
};

// The public models' numbers: normal q, k, v and s, the first layer's slopes.
void nominal(const Data& data);

// decay
void random_layer(const Data& data);
void near_one(const Data& data);
void no_decay(const Data& data);
void strong_decay(const Data& data);

// amplitudes
/// Normal tensors times these.
struct Scales {
  float q = 1;
  float k = 1;
  float v = 1;
  float s = 1;
};
void scaled(const Data& data, const Scales& scales);
void random_scale(const Data& data);
void mixed(const Data& data, Block block);
void prefix(const Data& data, float first, float rest);
void outliers(const Data& data);

// structure
void cancelling(const Data& data);
void orthogonal_query(const Data& data);
void positive(const Data& data);
void integers(const Data& data);
void one_hot(const Data& data);
void empty_memory(const Data& data);
void sparse_memory(const Data& data);

// changes
/// The next token: s becomes what the oracle gave as s_next, rounded to fp32; q, k, v are drawn anew.
void next_token(const Data& data, int step, const Expected& former);
/// 1 to 7 random elements of every input (step 1), then of one input after the other.
void change_some(const Data& data, int step);

}  // namespace kbh::lightning
