// Kernels with known behaviour, for tests of the timer.
#include <cuda_runtime.h>

#include <cstdint>

namespace {

__device__ std::uint64_t global_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

}  // namespace

/// Lasts so long.
extern "C" __global__ void kbh_spin(std::uint64_t ns) {
  const std::uint64_t begin = global_ns();
  while (global_ns() - begin < ns) {
  }
}

extern "C" __global__ void kbh_fault(unsigned* nowhere) { *nowhere = 1; }
