// Arithmetic that C++ has no word for.
#pragma once

namespace kbh::ptx {

/// 2^x by the multi-function unit: within 2^-22.5 or so, exactly 1 for 0, and 0 for -infinity. Results below 2^-126 are
/// 0. PTX ISA, "Floating Point Instructions: ex2".
__device__ inline float exp2_approx(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

}  // namespace kbh::ptx
