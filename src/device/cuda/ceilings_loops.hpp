// What one turn of each measuring loop computes: ceilings.cu runs them, measure.cpp counts.
#pragma once

namespace kbh::cuda {

// wgmma m64n256: K is 32 bytes of each operand. Operand tiles of 128 bytes a row, in the 128-byte swizzle, so four such
// steps a tile; two tiles in turn, and a new sum every 16 turns, as in a GEMM's main loop.
inline constexpr int kWgmmaM = 64;
inline constexpr int kWgmmaN = 256;
inline constexpr int kWgmmaStages = 2;
inline constexpr int kWgmmaStepsPerStage = 4;
inline constexpr int kWgmmaTurnsPerSum = 16;
inline constexpr int kRowBytes = 128;

/// Dynamic shared memory of a block of so many warpgroups: a left tile each, and a right one for all.
constexpr unsigned wgmma_shared_bytes(int warpgroups) {
  return static_cast<unsigned>(kWgmmaStages * (warpgroups * kWgmmaM + kWgmmaN) * kRowBytes);
}

// mma.sync: so many independent tiles of 16 x 8 (fp64: 8 x 8, or 16 x 8 where the device has it) a warp.
inline constexpr int kMmaTiles = 8;
inline constexpr int kMmaSteps = 4;

// Fused multiply-adds of one thread.
inline constexpr int kFmaChains = 16;
inline constexpr int kFmaSteps = 16;

}  // namespace kbh::cuda
