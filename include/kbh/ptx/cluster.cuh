// Thread block clusters: who am I, where is my neighbour's shared memory, when has everybody got here.
#pragma once

#include <cuda/ptx>

namespace kbh::ptx {

/// PTX ISA, "Special Registers: %cluster_ctarank, %cluster_nctarank". A launch without clusters is one of single
/// blocks.
__device__ inline unsigned cluster_rank() { return cuda::ptx::get_sreg_cluster_ctarank(); }
__device__ inline unsigned cluster_size() { return cuda::ptx::get_sreg_cluster_nctarank(); }

/// The same variable in the shared memory of block `rank`. Plain loads, stores and atomics work on what it returns.
/// PTX ISA, "Data Movement and Conversion Instructions: mapa".
template <typename T>
__device__ inline T* at_rank(T* shared, unsigned rank) {
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return there;
}

/// "I run": orders no memory, so it waits for nothing that is under way. A block's shared memory may be touched by its
/// neighbours from when they have all arrived: cluster_wait(). PTX ISA, "barrier.cluster".
__device__ inline void cluster_arrive_relaxed() { cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed); }
__device__ inline void cluster_wait() { cuda::ptx::barrier_cluster_wait(); }

/// What any thread of the cluster wrote before it, every thread sees after it.
__device__ inline void cluster_sync() {
  cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_release);
  cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
}

}  // namespace kbh::ptx
