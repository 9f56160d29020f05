// 08_lightning_attention: one decode step of linear attention with a decaying memory, as in MiniMax-Text-01. One file
// per concept: lightning.cpp (tensors, work, domain), oracle.cpp (with refresh), compare.cpp, draws.hpp (elements),
// fills.hpp and fills.cpp (whole draws), cases.cpp, mutants.cpp.
//
// For each sequence b and head h, with i the row (key channel) and j the column (value channel):
//     s_next[i, j] = decay[h] * s[i, j] + k[i] * v[j]
//     o[j]         = sum over i of q[i] * s_next[i, j]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.hpp"

namespace kbh::lightning {

inline constexpr std::int64_t kD = 128;           // channels of a head
inline constexpr std::int64_t kMemory = kD * kD;  // elements of a head's memory: 64 KiB

struct Sizes {
  std::int64_t sequences;  // B
  std::int64_t heads;      // H

  explicit Sizes(const Shape& shape) : sequences(shape["B"]), heads(shape["H"]) {}
  /// Memories, in the order (b, h).
  [[nodiscard]] std::int64_t memories() const { return sequences * heads; }
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Position of each tensor in the problem's order of inputs, and of outputs.
inline constexpr std::size_t kQ = 0;
inline constexpr std::size_t kK = 1;
inline constexpr std::size_t kV = 2;
inline constexpr std::size_t kS = 3;
inline constexpr std::size_t kDecay = 4;
inline constexpr std::size_t kSNext = 0;
inline constexpr std::size_t kO = 1;

/// Element errors allowed of s_next, as a multiple of its scale |decay * s| + |k * v| (see oracle). Two fp32 roundings
/// cost at most 2 * 2^-24 of that, k * v being exact in fp32; the factor 2 makes room for a kernel that rounds once
/// more. |s_next| itself is no scale: where the two terms cancel, an honest kernel is 2.5e-6 away.
inline constexpr double kStateBound = 0x1p-22;

/// outputs: s_next, o. scales: |decay * s| + |k * v| + 2^-103 for s_next, where the last term lets a kernel flush
/// denormals (2^-22 * 2^-103 = 2 * 2^-126); for o[j] the norm product |q| * |s_next[:, j]| / sqrt(128), which is the
/// rms of o[j] over random signs and does not vanish where q and the column are orthogonal, with room for flushing too.
Expected oracle(const Shape& shape, std::span<const ConstTensorView> tensors);

/// Draws a few random memories anew, with their q, k and v, and brings `expected` up to date.
void refresh(const DrawKey& key, std::span<const TensorView> tensors, Expected& expected);

/// s_next at kStateBound, o at the case's bounds.
Comparison compare(const Shape& shape, const Case& of, std::span<const ConstTensorView> tensors,
                   const Expected& expected, std::span<const ConstTensorView> outputs);

std::vector<Case> cases();
std::vector<Mutant> mutants();

}  // namespace kbh::lightning
