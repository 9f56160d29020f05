// Barriers that count bytes: a neighbour's stores announce themselves, so nobody waits longer than for the data.
#pragma once

#include <cstdint>

#include <cuda/ptx>
#include <kbh/ptx/cluster.cuh>

namespace kbh::ptx {

/// One thread prepares the barrier for `bytes` that neighbours are going to send; the cluster's first barrier
/// (cluster_arrive_relaxed, cluster_wait) publishes it. PTX ISA, "mbarrier.init", "mbarrier.arrive.expect_tx",
/// "fence.mbarrier_init".
__device__ inline void expect_bytes(std::uint64_t* barrier, unsigned bytes) {
  cuda::ptx::mbarrier_init(barrier, 1);
  cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, barrier,
                                       bytes);
}

/// Sixteen bytes into the shared memory of block `rank`, counted by its barrier. PTX ISA, "st.async".
template <typename T>
__device__ inline void send(T* shared, const T& value, std::uint64_t* barrier, unsigned rank) {
  static_assert(sizeof(T) == 16);
  cuda::ptx::st_async(reinterpret_cast<std::int32_t*>(at_rank(shared, rank)),
                      reinterpret_cast<const std::int32_t(&)[4]>(value), at_rank(barrier, rank));
}

/// Returns when the bytes of the barrier's first phase are there. PTX ISA, "mbarrier.try_wait".
__device__ inline void wait_for_bytes(std::uint64_t* barrier) {
  while (!cuda::ptx::mbarrier_try_wait_parity(cuda::ptx::sem_acquire, cuda::ptx::scope_cluster, barrier, 0)) {
  }
}

}  // namespace kbh::ptx
