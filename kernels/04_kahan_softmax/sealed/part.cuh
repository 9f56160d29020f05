// Sums of exponentials that lose nothing: compensated within a thread, integers between threads.
#pragma once

#include <cstdint>

#include <kbh/ptx/keys.cuh>
#include <kbh/ptx/math.cuh>
#include <kbh/ptx/row_slice.cuh>
#include <kbh/ptx/warp.cuh>

namespace softmax {

using namespace kbh::ptx;

/// e^below, for below <= 0: exactly 1 for 0, 0 for -infinity.
__device__ inline float exponential(float below) { return exp2_approx(below * 1.44269504f); }

/// A maximum to subtract: 0 where everything is masked, because -inf - -inf is no number.
__device__ inline float finite(float largest) { return largest == -kInfinity ? 0.0f : largest; }

/// A sum of terms up to 1, with what its additions rounded away. It starts at 1, so that no term exceeds the sum that
/// it joins: then three operations find the rounding exactly (Dekker's FastTwoSum).
struct CompensatedSum {
  float high = 1;
  float low = 0;

  __device__ void add(float term) {
    const float sum = high + term;
    low += term - (sum - high);
    high = sum;
  }
};

/// The warp's sum, each lane's first rounded to a multiple of 2^-36. Adding a large constant rounds a float to a grid
/// and leaves it as an integer in the low bits; integers are added by one instruction and without error. The coarse
/// grid takes lanes up to 63, the fine one what the coarse rounding leaves and the compensation.
__device__ inline double warp_total(const CompensatedSum& lane) {
  constexpr float kCoarse = 0x1.8p7f;  // an ulp is 2^-16
  constexpr float kFine = 0x1.8p-12f;  // an ulp is 2^-35
  const float value = lane.high - 1;
  const float coarse = value + kCoarse;
  const float fine = value - (coarse - kCoarse) + lane.low + kFine;
  const int whole = warp_sum(__float_as_int(coarse) - __float_as_int(kCoarse));
  const int rest = warp_sum(__float_as_int(fine) - __float_as_int(kFine));
  return whole * 0x1p-16 + rest * 0x1p-35;
}

/// Of numbers up to 2^19, rounded to multiples of 2^-36: in two halves, because redux.sync adds 32 bits.
__device__ inline double warp_total(double lane) {
  const auto units = static_cast<std::uint64_t>(__double2ll_rn(lane * 0x1p36));
  const unsigned low = warp_sum(static_cast<unsigned>(units & 0xffffff));
  const unsigned high = warp_sum(static_cast<unsigned>(units >> 24));
  return high * 0x1p-12 + low * 0x1p-36;
}

__device__ inline float inverse(double sum) { return __frcp_rn(static_cast<float>(sum)); }

/// What some elements contribute: their largest logit, and the sum of e^(x - largest).
struct alignas(16) Part {
  float largest;
  double sum;
};

/// Of nothing.
__device__ inline Part no_part() { return {-kInfinity, 0}; }

/// All lanes' parts as one.
__device__ inline Part merged(const Part& lane) {
  const float largest = from_ordered(warp_max(ordered(lane.largest)));
  return {largest, warp_total(lane.sum * static_cast<double>(exponential(lane.largest - finite(largest))))};
}

}  // namespace softmax
