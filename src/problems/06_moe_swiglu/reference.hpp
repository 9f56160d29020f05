// The mixture-of-experts up-projection with SwiGLU, to be read.
//
//   out[r, i] = silu(gate) * up,   gate = sum_k hidden[r, k] * W_gate[e, k, i],   up likewise with W_up,
//
// where e is the expert that owns row r: expert_offsets[e] <= r < expert_offsets[e + 1]. Sums are fp32, the result is
// rounded to bf16 once.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <kbh/numbers.hpp>

namespace kbh::reference {

struct MoeSizes {
  std::int64_t experts;  // E
  std::int64_t width;    // H: terms of a sum
  std::int64_t columns;  // I: sums per row and projection
};

/// x / (1 + e^-x). For x far below 0 the exponential is infinite, and the quotient is the right -0.
inline float silu(float x) { return x / (1.0f + std::exp(-x)); }

/// w_gate, w_up: bf16 (E, H, I). hidden: bf16 (rows, H). expert_offsets: int32 (E + 1), ascending from 0 to rows, equal
/// neighbours for an expert without rows. out: bf16 (rows, I). All row-major and dense.
inline void moe_swiglu(const MoeSizes& size, const std::uint16_t* w_gate, const std::uint16_t* w_up,
                       const std::uint16_t* hidden, const std::int32_t* expert_offsets, std::uint16_t* out) {
  std::vector<float> gate(static_cast<std::size_t>(size.columns));
  std::vector<float> up(static_cast<std::size_t>(size.columns));
  for (std::int64_t e = 0; e < size.experts; ++e)
    for (std::int64_t r = expert_offsets[e]; r < expert_offsets[e + 1]; ++r) {
      gate.assign(gate.size(), 0.0f);
      up.assign(up.size(), 0.0f);
      for (std::int64_t k = 0; k < size.width; ++k) {
        const float x = from_bf16(hidden[r * size.width + k]);
        const std::uint16_t* gate_row = w_gate + (e * size.width + k) * size.columns;
        const std::uint16_t* up_row = w_up + (e * size.width + k) * size.columns;
        for (std::size_t i = 0; i < gate.size(); ++i) {
          gate[i] += x * from_bf16(gate_row[i]);
          up[i] += x * from_bf16(up_row[i]);
        }
      }
      std::uint16_t* out_row = out + r * size.columns;
      for (std::size_t i = 0; i < gate.size(); ++i) out_row[i] = to_bf16(silu(gate[i]) * up[i]);
    }
}

}  // namespace kbh::reference
