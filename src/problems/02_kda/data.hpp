// The tensors of one draw, and the draws that more than one file needs.
#pragma once

#include <string>
#include <string_view>

#include "problem/draw.hpp"
#include "problems/02_kda/draws.hpp"
#include "problems/02_kda/kda.hpp"

namespace kbh::kda {

/// Amplitude of upstream's q, k and v; its gates are exp(0.1 normal - 0.05).
inline constexpr float kAmplitude = 0.1f;
inline constexpr NormalGate kNominalGate = {-0.05f, 0.1f};

struct Data {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint16_t> q, k, v;
  std::span<float> g;
  std::span<std::uint16_t> beta;

  Data(const DrawKey& draw, std::span<const TensorView> tensors)
      : key(draw),
        size(draw.shape),
        q(tensors[kQ].as<std::uint16_t>()),
        k(tensors[kK].as<std::uint16_t>()),
        v(tensors[kV].as<std::uint16_t>()),
        g(tensors[kG].as<float>()),
        beta(tensors[kBeta].as<std::uint16_t>()) {}

  [[nodiscard]] Grid keys() const { return grid(size.key_width); }
  [[nodiscard]] Grid values() const { return grid(size.value_width); }
  [[nodiscard]] Random random(std::string_view purpose) const { return Random(key.stream(purpose)); }

  template <typename Draw>
  void draw_q(Draw draw) const {
    fill_each(q, key.stream("q"), draw);
  }
  template <typename Draw>
  void draw_k(Draw draw) const {
    fill_each(k, key.stream("k"), draw);
  }
  template <typename Draw>
  void draw_v(Draw draw) const {
    fill_each(v, key.stream("v"), draw);
  }
  template <typename Draw>
  void draw_g(Draw draw) const {
    fill_each(g, key.stream("g"), draw);
  }
  template <typename Draw>
  void draw_beta(Draw draw) const {
    fill_each(beta, key.stream("beta"), draw);
  }

 private:
  [[nodiscard]] Grid grid(std::int64_t width) const {
    return {static_cast<std::uint64_t>(size.tokens), static_cast<std::uint64_t>(size.heads),
            static_cast<std::uint64_t>(width)};
  }
};

void nominal(const Data& data);

}  // namespace kbh::kda
