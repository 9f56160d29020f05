// How whole tensors are drawn: elements by draws.hpp, a few numbers per row by the functions here. Every random choice
// comes from a secret stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/draw.hpp"
#include "problems/01_fp8_gemm/draws.hpp"
#include "problems/01_fp8_gemm/fp8_gemm.hpp"

namespace kbh::fp8_gemm {

/// The state of one draw.
struct StateDraw {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint8_t> weight;
  std::span<float> weight_scale;

  StateDraw(const DrawKey& k, std::span<const TensorView> state)
      : key(k), size(k.shape), weight(state[0].as<std::uint8_t>()), weight_scale(state[1].as<float>()) {}
};

/// The input of one draw.
struct InputDraw {
  const DrawKey& key;
  Sizes size;
  std::span<std::uint8_t> x;

  InputDraw(const DrawKey& k, std::span<const TensorView> tensors)
      : key(k), size(k.shape), x(Operands<TensorView>{tensors}.x()) {}
};

// ---- state

void nominal_state(const StateDraw& draw);

/// Multiplies every weight by amplitude(element) and rounds it to e4m3 again; the scales stay.
template <typename Amplitude>
void rescale_weight(const StateDraw& draw, Amplitude amplitude) {
  parallel_for(draw.weight.size(), std::size_t{1} << 15, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      draw.weight[i] = finite_e4m3(philox::mul(from_e4m3(draw.weight[i]), amplitude(i)));
  });
}

void one_sign_state(const StateDraw& draw);
void random_scale_state(const StateDraw& draw);
void mixed_columns_state(const StateDraw& draw);
void prefix_state(const StateDraw& draw, float first, float rest);
void any_code_state(const StateDraw& draw);
void zero_rows_state(const StateDraw& draw);

void ternary_state(const StateDraw& draw);
void integer_state(const StateDraw& draw);
void saturated_state(const StateDraw& draw);
void sparse_state(const StateDraw& draw);
void subnormal_state(const StateDraw& draw);

// ---- inputs

void scaled_x(const InputDraw& draw, float scale);
void one_sign_x(const InputDraw& draw);
void random_scale_x(const InputDraw& draw);
/// Each block of `block` rows has an amplitude of its own in 2^-6 .. 2^6; both ends occur.
void mixed_rows_x(const InputDraw& draw, std::int64_t block);
/// The last K mod 32 columns (32 where that is 0) are 64 times the others.
void loud_tail_x(const InputDraw& draw);
void prefix_x(const InputDraw& draw, float first, float rest);
void any_code_x(const InputDraw& draw);
void zero_rows_x(const InputDraw& draw);

void ternary_x(const InputDraw& draw);
void integer_x(const InputDraw& draw);
void saturated_x(const InputDraw& draw);
void sparse_x(const InputDraw& draw);
void subnormal_x(const InputDraw& draw);

/// 1 to 7 random elements become about 32 times the nominal rms: in one of K terms that moves the sum by 32 / sqrt(K)
/// of its rms, 35 % at K = 8192.
void change_some(const InputDraw& draw, int step);

}  // namespace kbh::fp8_gemm
