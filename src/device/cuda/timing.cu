// What the grader itself runs around a timed call (cold_timer.cpp).
#include <cuda_runtime.h>

#include <cstdint>

namespace {

__device__ std::uint64_t global_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ unsigned multiprocessor() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

}  // namespace

/// Holds the stream until the host opens the gate; gives up after `limit_ns`, so that a call that waits for the device
/// while the gate is shut ends (one thread).
extern "C" __global__ void kbh_gate(const volatile unsigned* open, std::uint64_t limit_ns, unsigned* gave_up) {
  const std::uint64_t begin = global_ns();
  while (*open == 0)
    if (global_ns() - begin > limit_ns) {
      *gave_up = 1;
      return;
    }
}

/// Time and cycle count of multiprocessor 0: two of these tell its clock between them. One block per multiprocessor,
/// since nothing else decides where a block lands.
extern "C" __global__ void kbh_clock(std::uint64_t* time_and_cycles) {
  if (multiprocessor() != 0) return;
  time_and_cycles[0] = global_ns();
  time_and_cycles[1] = static_cast<std::uint64_t>(clock64());
}

extern "C" __global__ void kbh_write_sweep(uint4* data, std::uint64_t count, unsigned salt) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    data[i] = make_uint4(salt, static_cast<unsigned>(i), salt, static_cast<unsigned>(i >> 32));
}

/// Reads everything once; `sink` is written only if the data hold what they never hold, so that no load is dropped.
extern "C" __global__ void kbh_read_sweep(const uint4* data, std::uint64_t count, unsigned* sink) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  constexpr int kInFlight = 8;
  std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + (kInFlight - 1) * stride < count; i += kInFlight * stride) {
    uint4 v[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) v[j] = data[i + j * stride];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) sum |= v[j].x ^ v[j].z;
  }
  for (; i < count; i += stride) sum |= data[i].x ^ data[i].z;
  if (sum != 0) *sink = sum;
}

extern "C" __global__ void kbh_empty() {}
